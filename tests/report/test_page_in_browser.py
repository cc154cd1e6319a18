"""The page in a real browser: what people see, click and type."""

import csv

import numpy as np
import pytest
from page_checks import CONTRASTS, OVERLAPS, TICKS

from spgcl.evaluation import most_similar
from spgcl.io import read_embeddings
from spgcl.report.columns import Column
from spgcl.report.page import write_page
from spgcl.report.single import describe_run

IN_VIEW = """(ids) => nodeMap.views.every((view) => ids.every((id) => {
  const { xaxis, yaxis } = view.plot._fullLayout;
  const node = nodeMap.ids.indexOf(id);
  const isInside = (value, range) => value >= range[0] && value <= range[1];
  return isInside(view.x[node], xaxis.range) && isInside(view.y[node], yaxis.range);
}))"""
CENTRE = """() => {
  const { xaxis, yaxis } = document.querySelector(".plane")._fullLayout;
  return [xaxis, yaxis].map((axis) => (axis.range[0] + axis.range[1]) / 2);
}"""
WHERE = """(node) => {
  const { xaxis, yaxis } = document.querySelector(".plane")._fullLayout;
  const frame = document.querySelector(".plane").getBoundingClientRect();
  const across = xaxis._offset + xaxis.d2p(nodeMap.views[0].x[node]);
  return [frame.left + across, frame.top + yaxis._offset + yaxis.d2p(nodeMap.views[0].y[node])];
}"""
TRACES = "document.querySelector('.plane').data.map((trace) => [trace.marker?.color, trace.x.length])"


def search(page, typed: str) -> None:
    page.fill("#search", typed)
    page.press("#search", "Enter")


def point_at(page, node: int) -> tuple[float, float]:
    """Move the mouse to a node of the map, zoomed out, and return where that is."""
    page.get_by_role("button", name="Whole map").click()
    page.locator(".plane").scroll_into_view_if_needed()
    position = page.evaluate(WHERE, node)
    page.mouse.move(position[0] - 40, position[1])
    page.mouse.move(*position, steps=3)
    return position


def click_on(page, node: int) -> None:
    """Click a node of the map: Plotly takes a click for one on the node that it has shown the card of."""
    position = point_at(page, node)
    page.wait_for_selector(".card:not([hidden])")
    page.mouse.click(*position)


def listed(page) -> list[tuple[str, float]]:
    rows = page.locator("#node li button").all()
    return [
        (row.locator("span").first.inner_text(), float(row.locator(".number").inner_text())) for row in rows
    ]


def test_every_panel_has_data_and_nothing_is_loaded_or_complained_about(fitted, visit):
    page = visit(fitted / "report.html")
    assert page.title() == "spgcl on edges"
    headings = page.locator("h2").all_inner_texts()
    assert headings == [
        *("Verdict", "Map", "Evaluation", "Where the signal is", "Homophily", "Training", "Run")
    ]
    names, values = (page.locator(f"#verdict {part}").all_inner_texts() for part in ("dt", "dd"))
    facts = dict(zip(names, values, strict=True))
    assert "60 nodes" in facts["Graph"] and facts["Training"] == "6 steps"
    assert page.locator("#verdict .unit").inner_text().endswith("over 10 splits")
    assert page.locator("#run pre").inner_text().startswith("spgcl fit ")
    assert (
        page.locator("#training .chart").count()
        == page.locator("#training .chart .scatterlayer .js-line").count() - 1
    )
    titles = page.locator("#training h3").all_inner_texts()
    assert titles[0] == "Loss of spgcl" and "Homophily of the transformed graph" in titles
    assert any(title.startswith("Cover ratio") for title in titles)
    points = page.evaluate("document.querySelector('.plane').data.map((trace) => trace.x.length)")
    assert points == [20, 20, 20]
    assert page.locator(".map-frame h3").count() == 0
    assert page.locator("#homophily .matrix tbody td").count() == 2 * 9
    assert page.locator("#verdict .strip.own circle").count() == 10
    assert page.locator("#verdict .strip.other circle").count() == 4 * 10
    assert page.locator("#evaluation .matrix tbody td").count() == 9


@pytest.mark.parametrize("how", ["Enter", "mouse"])
def test_search_finds_a_node_centres_it_and_lists_its_ten_nearest(fitted, visit, how):
    page = visit(fitted / "report.html")
    if how == "Enter":
        search(page, "p17")
    else:
        page.fill("#search", "P1")
        # What begins with it, the shorter ids among them, before what only contains it.
        assert page.locator("#matches li").all_inner_texts()[:3] == ["p1", "p10", "p11"]
        page.fill("#search", "p17")
        page.locator("#matches li").first.click()
    assert page.locator("#node h3").inner_text() == "p17"
    linked = page.locator("#node .chips button").all_inner_texts()
    assert page.evaluate(IN_VIEW, ["p17", *linked, *(node for node, _ in listed(page))])
    vectors, ids = read_embeddings(fitted)
    rows, similarities = most_similar(vectors, 17, 10)
    found = listed(page)
    assert [value for _, value in found] == pytest.approx(similarities.tolist(), abs=6e-4)
    assert {node for node, _ in found} == {str(ids[row]) for row in rows}


def test_a_click_on_a_neighbour_goes_there(fitted, people, visit):
    page = visit(fitted / "report.html")
    search(page, "p3")
    before = page.evaluate(CENTRE)
    for target in ("#node li button", "#node .chips button"):
        goal = page.locator(f"{target} span").first.inner_text()
        page.locator(target).first.click()
        assert page.locator("#node h3").inner_text() == goal
        assert page.evaluate(IN_VIEW, [goal, *page.locator("#node .chips button").all_inner_texts()])
        assert page.evaluate(CENTRE) != pytest.approx(before, abs=1e-4)
        before = page.evaluate(CENTRE)


def test_a_click_moves_the_map_only_if_a_link_is_out_of_view(fitted, visit):
    page = visit(fitted / "report.html")
    keys = page.locator("#legend .marks .key")
    assert keys.count() == 0
    whole = page.evaluate(CENTRE)
    click_on(page, 5)
    page.wait_for_function("document.querySelector('#node h3').textContent === 'p5'")
    assert page.evaluate(CENTRE) == whole
    assert keys.all_inner_texts() == ["selected", "nearest by embedding", "link in the graph"]
    for _ in range(4):
        page.get_by_role("button", name="Zoom in").click()
    linked = page.locator("#node .chips button").all_inner_texts()
    assert not page.evaluate(IN_VIEW, linked)
    page.evaluate("nodeMap.select(5, false)")
    assert page.evaluate(IN_VIEW, ["p5", *linked])


def test_an_unknown_id_is_reported(fitted, visit):
    page = visit(fitted / "report.html")
    search(page, "nobody")
    assert page.locator("#matches").inner_text() == "No node has this id"
    assert page.locator("#node h3").inner_text() == "No node selected"


def test_the_neighbours_of_a_node_are_those_of_its_edges(fitted, people, visit):
    page = visit(fitted / "report.html")
    lines = (people.folder / "edges.csv").read_text().splitlines()[1:]
    pairs = [set(line.split(",")) for line in lines]
    linked = {other for pair in pairs if "p5" in pair for other in pair - {"p5"}}
    search(page, "p5")
    assert set(page.locator("#node .chips button").all_inner_texts()) == linked
    point_at(page, 5)
    page.wait_for_selector(".card:not([hidden])")
    card = page.locator(".card").inner_text()
    assert card.startswith("p5") and all(part in card for part in ("label: blue", "linked to "))
    page.fill("#search", "")
    search(page, "p6")
    click_on(page, 5)
    # What a click does is drawn with the next frame, for which a busy machine takes its time.
    page.wait_for_function("document.querySelector('#node h3').textContent === 'p5'")


def test_colours_change_with_the_choice(fitted, visit):
    page = visit(fitted / "report.html")
    choices = page.locator("#colour option").all_inner_texts()
    assert choices == ["label", "predicted", "first split", "cluster", "degree", "age", "town"]
    by_label = page.evaluate(TRACES)
    assert page.locator("#legend .key").all_inner_texts() == ["blue", "green", "red"]
    assert len({colour for colour, _ in by_label}) == 3
    page.select_option("#colour", label="degree")
    _, (colours, _) = page.evaluate(TRACES)
    assert len(colours) == 60 and len(set(colours)) > 3 and {0, 1} <= set(colours)
    # The legend has the scale of the points.
    degrees = np.array(page.evaluate("Array.from(nodeMap.degrees)"))
    assert page.locator("#legend .ramp span").first.inner_text() == str(degrees.min())
    assert page.locator("#legend .ramp span").last.inner_text() == str(degrees.max())
    for tick in page.locator("#legend .ramp span").all():
        (colour,) = {colours[node] for node in np.flatnonzero(degrees == float(tick.inner_text()))} or {0.5}
        assert float(tick.evaluate("tick => tick.style.left").rstrip("%")) == pytest.approx(
            100 * colour, abs=0.01
        )
    page.select_option("#colour", label="age")
    (_, unknown), (_, known) = page.evaluate(TRACES)
    assert (unknown, known) == (2, 58)
    page.select_option("#colour", label="town")
    # One node has no row in the table.
    assert page.locator("#legend .key").all_inner_texts() == ["green", "red", "unknown"]
    before = [count for _, count in page.evaluate(TRACES)]
    page.locator("#legend .key").nth(1).click()
    assert [count for _, count in page.evaluate(TRACES)] == [before[0], 0, before[2]]


def test_thousands_of_nodes_are_drawn_through_webgl_where_there_is_one(make_material, visit, tmp_path):
    content = describe_run(make_material(3200, labelled=False), projection="pca", say=str)
    write_page(tmp_path / "page.html", content)
    page = visit(tmp_path / "page.html")
    kinds = set(page.evaluate("document.querySelector('.plane').data.map((trace) => trace.type)"))
    assert kinds == ({"scattergl"} if page.evaluate("hasWebGL()") else {"scatter"})
    assert page.locator(".plane .no-webgl").count() == 0
    search(page, "3111")
    assert page.evaluate(IN_VIEW, ["3111"])
    point_at(page, 3111)
    page.wait_for_selector(".card:not([hidden])")


def test_the_keyboard_is_enough(fitted, visit):
    page = visit(fitted / "report.html")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    reached = []
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.textContent"))
        if reached[-1] == "search":
            break
    assert reached[-1] == "search" and "theme" in reached
    page.keyboard.type("p1")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert page.locator("#node h3").inner_text() == "p10"
    page.locator("#node li button").nth(2).focus()
    goal = page.locator("#node li button span").nth(4).inner_text()
    page.keyboard.press("Enter")
    assert page.locator("#node h3").inner_text() == goal
    focused = "getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate("document.activeElement.tagName") == "BUTTON" and page.evaluate(focused) == "solid"


def test_light_and_dark_follow_the_system_and_the_button(fitted, visit):
    ground = "getComputedStyle(document.body).backgroundColor"
    ink = "document.querySelector('#training .chart')._fullLayout.font.color"
    page = visit(fitted / "report.html", scheme="dark")
    dark = page.evaluate(ground), page.evaluate(ink)
    assert dark[0] == "rgb(18, 22, 28)"
    page.locator("#theme").click()
    light = page.evaluate(ground), page.evaluate(ink)
    assert light[0] == "rgb(255, 255, 255)" and light[1] != dark[1]
    page = visit(fitted / "report.html", scheme="light")
    assert page.evaluate(ground) == light[0]
    page.emulate_media(color_scheme="dark")
    page.wait_for_selector("html[data-theme='dark']")


@pytest.mark.parametrize("width", [360, 800, 1400])
def test_labels_never_collide_and_the_page_never_scrolls_sideways(
    fitted, hostile_run, visit, width, tmp_path
):
    for run in (fitted, hostile_run):
        page = visit(run / "report.html", width=width)
        search(page, "1")
        page.locator("details").first.evaluate("part => part.open = true")
        assert page.evaluate(OVERLAPS) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        picture = tmp_path / f"{run.parent.name}.png"
        page.screenshot(path=picture, full_page=True)
        assert picture.stat().st_size > 20_000


def drag(page, mode: str, view: int = 0) -> None:
    """Draw a box, or a lasso of the same shape, around the middle of a view."""
    page.get_by_role("button", name=mode).click()
    plane = page.locator(".plane").nth(view)
    plane.scroll_into_view_if_needed()
    frame = plane.bounding_box()
    corners = [(0.3, 0.3), (0.7, 0.3), (0.7, 0.7), (0.3, 0.7), (0.3, 0.3)]
    points = [(frame["x"] + x * frame["width"], frame["y"] + y * frame["height"]) for x, y in corners]
    page.mouse.move(*points[0])
    page.mouse.down()
    for point in [points[2]] if mode == "Box" else points[1:]:
        page.mouse.move(*point, steps=5)
    page.mouse.up()
    page.wait_for_selector("#chosen:not([hidden])")


INSIDE = """(view) => {
  const { x, y, plot } = nodeMap.views[view];
  const { xaxis, yaxis } = plot._fullLayout, frame = plot.getBoundingClientRect();
  const isInside = (part, whole) => part > 0.3 * whole && part < 0.7 * whole;
  return nodeMap.ids.filter((_, node) => isInside(xaxis._offset + xaxis.d2p(x[node]), frame.width)
    && isInside(yaxis._offset + yaxis.d2p(y[node]), frame.height));
}"""


@pytest.mark.parametrize("mode", ["Box", "Lasso"])
def test_nodes_inside_of_a_box_or_lasso_are_listed_and_saved(fitted, people, visit, mode):
    page = visit(fitted / "report.html")
    page.get_by_role("button", name="Whole map").click()
    expected = page.evaluate(INSIDE, 0)
    drag(page, mode)
    assert page.locator("#chosen .chips button").all_inner_texts() == expected and 0 < len(expected) < 60
    assert page.locator("#chosen h3").inner_text() == f"{len(expected)} nodes"
    dimmed = page.evaluate(
        "document.querySelector('.plane').data.map((trace) => trace.selectedpoints.length)"
    )
    assert sum(dimmed) == len(expected)
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as CSV").click()
    rows = list(csv.DictReader(download.value.path().read_text().splitlines()))
    assert [row["node"] for row in rows] == expected
    assert list(rows[0]) == ["node", *page.locator("#colour option").all_inner_texts()]
    for row in rows:
        number = people.ids.index(row["node"])
        assert row["label"] == ("red", "green", "blue")[number % 3]
        assert row["age"] == ("unknown" if number in (0, 59) else str(10 * number))
    page.get_by_role("button", name="Clear selection").click()
    assert not page.locator("#chosen").is_visible()
    assert page.locator(".selectionlayer path").count() == 0


def test_nodes_are_filtered_by_columns_and_errors(fitted, people, visit):
    page = visit(fitted / "report.html")
    shown = "nodeMap.views[0].plot.data.reduce((sum, trace) => sum + trace.x.length, 0)"
    page.select_option("#filter", label="town")
    page.select_option("#limits select", label="red")
    # Those whose town is red, but for the last one, which has no row.
    expected = [node for number, node in enumerate(people.ids[:-1]) if number % 2 == 0]
    assert page.locator("#chosen .chips button").all_inner_texts() == expected
    assert page.evaluate(shown) == len(expected)
    page.select_option("#filter", label="age")
    page.locator("#limits input").nth(0).fill("100")
    page.locator("#limits input").nth(1).fill("120")
    assert page.locator("#chosen .chips button").all_inner_texts() == ["p10", "p11", "p12"]
    page.get_by_role("button", name="Show all nodes").click()
    assert page.evaluate(shown) == 60 and not page.locator("#chosen").is_visible()
    page.check("#errors")
    page.select_option("#colour", label="first split")
    names = page.locator("#legend .key").all_inner_texts()
    counts = dict(zip(names, [count for _, count in page.evaluate(TRACES)], strict=True))
    column = "nodeMap.columns.find((column) => column.name === '{}').values"
    labels, predicted = (
        np.array(page.evaluate(f"Array.from({column.format(name)})")) for name in ("label", "predicted")
    )
    wrong = np.count_nonzero((predicted >= 0) & (predicted != labels))
    assert counts == {"right": 0, "wrong": wrong, "not tested": 0} and wrong > 0


def test_nodes_are_sized_by_their_degree(fitted, visit):
    page = visit(fitted / "report.html")
    page.check("#sized")
    page.select_option("#colour", label="degree")
    degrees = page.evaluate("Array.from(nodeMap.degrees)")
    sizes = page.evaluate("nodeMap.views[0].plot.data[1].marker.size")
    assert np.argsort(sizes, kind="stable").tolist() == np.argsort(degrees, kind="stable").tolist()
    ends = [f"degree {min(degrees)}", f"degree {max(degrees)}"]
    assert page.locator("#legend .marks .key").all_inner_texts() == ends


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(fitted, visit, scheme):
    page = visit(fitted / "report.html", scheme=scheme)
    search(page, "p5")
    page.locator("#legend .key").first.click()
    page.locator("details").first.evaluate("part => part.open = true")
    # The strongest shade that a cell can have.
    page.evaluate("document.querySelector('.matrix td').style.background = shade(1)")
    contrasts = page.evaluate(CONTRASTS)
    assert len(contrasts) > 20 and {kind: value for kind, value in contrasts.items() if value < 4.5} == {}


@pytest.mark.parametrize("width", [360, 561, 860, 1400])
def test_labels_of_an_axis_stay_on_its_lines(fitted, visit, width):
    distances = visit(fitted / "report.html", width=width).evaluate(TICKS)
    assert len(distances) > 30 and max(distances) < 0.6


def test_numbers_are_shown_as_they_are(visit, make_material, tmp_path):
    exact = np.array([69885952.0, 69885953, 2**52 + 1, -7, 0, 0.1, 123456.75, *range(33)])
    content = describe_run(make_material(columns=(Column("account", exact),)), projection="pca", say=str)
    write_page(tmp_path / "page.html", content)
    page = visit(tmp_path / "page.html")
    shown = []
    for node in range(7):
        search(page, str(node))
        shown.append(page.locator("#node dd").last.inner_text())
    assert shown == ["69885952", "69885953", str(2**52 + 1), "-7", "0", "0.1", "123456.8"]
    page.select_option("#colour", label="account")
    ticks = page.locator("#legend .ramp span").all_inner_texts()
    # Skewed: a scale by rank, so that the small numbers differ, too.
    assert len(ticks) == 5 and ticks[0] == "-7" and ticks[-1] == str(2**52 + 1)
    colours = page.evaluate(TRACES)[1][0]
    assert np.ptp(colours[10:40]) > 0.5


def test_hostile_ids_and_labels_are_shown_as_text_and_run_nothing(hostile_run, hostile, visit):
    page = visit(hostile_run / "report.html")
    assert page.locator("main b, main i, main img, main a, main script").count() == 0
    for node in hostile.ids[:9]:
        search(page, node)
        shown = " ".join(page.locator("#node h3").text_content().split())
        expected = node if len(node) <= 60 else node[:59] + "…"
        assert shown == " ".join(expected.split())
        point_at(page, hostile.ids.index(node))
        page.wait_for_selector(".card:not([hidden])")
    for choice in page.locator("#colour option").all_inner_texts():
        page.select_option("#colour", label=choice)
        point_at(page, 3)
        page.wait_for_selector(".card:not([hidden])")
    page.select_option("#colour", label="label")
    keys = page.locator("#legend .key").all_inner_texts()
    assert keys[:2] == ['"two" <script>window.hacked = 1</script>', "<b>one</b>"]
    assert len(keys[2]) == 80 and keys[2].endswith("…")
    assert "</script><i>town</i>" in page.locator("#colour option").all_inner_texts()
