"""The page in a real browser: what people see, click and type."""

import numpy as np
import pytest

from spgcl.evaluation import most_similar
from spgcl.io import read_embeddings
from spgcl.report.page import write_page
from spgcl.report.single import describe_run

# Text that must not run into other text, wherever the browser is asked to draw it.
OVERLAPS = """() => {
  // The header lies over the page on purpose once it is scrolled.
  window.scrollTo({ top: 0, behavior: "instant" });
  const parts = "h1, h2, h3, h4, nav a, button, label, dt, dd, .strip .name, .strip .mean, .ticks span, " +
    ".unit, .key span, td, th, .xtick text, .ytick text, .xtitle, .ramp span, footer";
  // What lies outside of a box that scrolls is not seen.
  const seen = (part) => {
    const { left, right, top, bottom } = part.getBoundingClientRect();
    const frame = part.closest("#node, .scroll")?.getBoundingClientRect() ?? { left, right, top, bottom };
    return {
      left: Math.max(left, frame.left), right: Math.min(right, frame.right),
      top: Math.max(top, frame.top), bottom: Math.min(bottom, frame.bottom),
    };
  };
  const boxes = [...document.querySelectorAll(parts)]
    .filter((part) => part.textContent.trim() && part.checkVisibility())
    .map((part) => ({ part, box: seen(part) }))
    .filter(({ box }) => box.right > box.left && box.bottom > box.top);
  const found = [];
  boxes.forEach(({ part, box }, index) => boxes.slice(index + 1).forEach((other) => {
    if (part.contains(other.part) || other.part.contains(part)) return;
    const wide = Math.min(box.right, other.box.right) - Math.max(box.left, other.box.left);
    const high = Math.min(box.bottom, other.box.bottom) - Math.max(box.top, other.box.top);
    if (wide > 1 && high > 2) found.push(`${part.textContent} | ${other.part.textContent}`);
  }));
  return found;
}"""
CENTRE = """() => {
  const { xaxis, yaxis } = document.getElementById("plane")._fullLayout;
  return [xaxis, yaxis].map((axis) => (axis.range[0] + axis.range[1]) / 2);
}"""
POSITION = """(id) => {
  const node = nodeMap.ids.indexOf(id);
  return [nodeMap.x[node], nodeMap.y[node]];
}"""
WHERE = """(node) => {
  const { xaxis, yaxis } = document.getElementById("plane")._fullLayout;
  const frame = document.getElementById("plane").getBoundingClientRect();
  const across = xaxis._offset + xaxis.d2p(nodeMap.x[node]);
  return [frame.left + across, frame.top + yaxis._offset + yaxis.d2p(nodeMap.y[node])];
}"""
TRACES = "document.getElementById('plane').data.map((trace) => [trace.marker?.color, trace.visible])"


def search(page, typed: str) -> None:
    page.fill("#search", typed)
    page.press("#search", "Enter")


def point_at(page, node: int) -> tuple[float, float]:
    """Move the mouse to a node of the map, zoomed out, and return where that is."""
    page.get_by_role("button", name="Whole map").click()
    page.locator("#plane").scroll_into_view_if_needed()
    position = page.evaluate(WHERE, node)
    page.mouse.move(position[0] - 40, position[1])
    page.mouse.move(*position, steps=3)
    return position


def listed(page) -> list[tuple[str, float]]:
    rows = page.locator("#node li button").all()
    return [
        (row.locator("span").first.inner_text(), float(row.locator(".number").inner_text())) for row in rows
    ]


def test_every_panel_has_data_and_nothing_is_loaded_or_complained_about(fitted, visit):
    page = visit(fitted / "report.html")
    assert page.title() == "spgcl on edges"
    headings = page.locator("h2").all_inner_texts()
    assert headings == ["Summary", "Where the signal is", "Training", "Map", "Homophily", "Evaluation"]
    facts = dict(
        zip(
            page.locator("#summary dt").all_inner_texts(),
            page.locator("#summary dd").all_inner_texts(),
            strict=True,
        )
    )
    assert "60 nodes" in facts["Graph"] and facts["Training"] == "6 steps"
    assert "deviation over 10 splits" in facts["Score"]
    assert page.locator("#summary pre").inner_text().startswith("spgcl fit ")
    assert (
        page.locator("#training .chart").count()
        == page.locator("#training .chart .scatterlayer .js-line").count() - 1
    )
    titles = page.locator("#training h3").all_inner_texts()
    assert titles[0] == "Loss of spgcl" and "Homophily of the transformed graph" in titles
    assert any(title.startswith("Cover ratio") for title in titles)
    points = page.evaluate("document.getElementById('plane').data.map((trace) => trace.x.length)")
    assert points == [20, 20, 20]
    assert page.locator("#homophily .matrix tbody td").count() == 2 * 9
    assert page.locator("#evaluation .strip.own circle").count() == 10
    assert page.locator("#evaluation .strip.other circle").count() == 3 * 10
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
    assert page.evaluate(CENTRE) == pytest.approx(page.evaluate(POSITION, "p17"), abs=1e-4)
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
        assert page.evaluate(CENTRE) == pytest.approx(page.evaluate(POSITION, goal), abs=1e-4)
        assert page.evaluate(CENTRE) != pytest.approx(before, abs=1e-4)
        before = page.evaluate(CENTRE)


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
    page.wait_for_selector("#card:not([hidden])")
    card = page.locator("#card").inner_text()
    assert card.startswith("p5") and all(part in card for part in ("label: blue", "linked to "))
    page.fill("#search", "")
    search(page, "p6")
    page.mouse.click(*point_at(page, 5))
    # What a click does is drawn with the next frame, for which a busy machine takes its time.
    page.wait_for_function("document.querySelector('#node h3').textContent === 'p5'")


def test_colours_change_with_the_choice(fitted, visit):
    page = visit(fitted / "report.html")
    choices = page.locator("#colour option").all_inner_texts()
    assert choices == ["label", "cluster", "degree", "age", "town"]
    by_label = page.evaluate(TRACES)
    assert page.locator("#legend .key").all_inner_texts() == ["blue", "green", "red"]
    assert len({colour for colour, _ in by_label}) == 3
    page.select_option("#colour", label="degree")
    ((colours, _),) = page.evaluate(TRACES)
    assert len(colours) == 60 and len(set(colours)) > 3
    assert page.locator("#legend .ramp").count() == 1
    page.select_option("#colour", label="age")
    ((colours, _),) = page.evaluate(TRACES)
    assert sum(colour is None or np.isnan(colour) for colour in colours) == 2
    page.select_option("#colour", label="town")
    # One node has no row in the table.
    assert page.locator("#legend .key").all_inner_texts() == ["green", "red", "unknown"]
    page.locator("#legend .key").nth(1).click()
    assert [visible for _, visible in page.evaluate(TRACES)] == [True, False, True]


def test_thousands_of_nodes_are_drawn_through_webgl_where_there_is_one(make_material, visit, tmp_path):
    content = describe_run(make_material(3200, labelled=False), projection="pca", say=str)
    write_page(tmp_path / "page.html", content)
    page = visit(tmp_path / "page.html")
    kinds = set(page.evaluate("document.getElementById('plane').data.map((trace) => trace.type)"))
    assert kinds == ({"scattergl"} if page.evaluate("hasWebGL()") else {"scatter"})
    assert page.locator("#plane .no-webgl").count() == 0
    search(page, "3111")
    assert page.evaluate(CENTRE) == pytest.approx(page.evaluate(POSITION, "3111"), abs=1e-4)
    point_at(page, 3111)
    page.wait_for_selector("#card:not([hidden])")


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


def test_hostile_ids_and_labels_are_shown_as_text_and_run_nothing(hostile_run, hostile, visit):
    page = visit(hostile_run / "report.html")
    assert page.locator("main b, main i, main img, main a, main script").count() == 0
    for node in hostile.ids[:9]:
        search(page, node)
        shown = " ".join(page.locator("#node h3").text_content().split())
        expected = node if len(node) <= 60 else node[:59] + "…"
        assert shown == " ".join(expected.split())
        point_at(page, hostile.ids.index(node))
        page.wait_for_selector("#card:not([hidden])")
    for choice in page.locator("#colour option").all_inner_texts():
        page.select_option("#colour", label=choice)
        point_at(page, 3)
        page.wait_for_selector("#card:not([hidden])")
    page.select_option("#colour", label="label")
    keys = page.locator("#legend .key").all_inner_texts()
    assert keys[:2] == ['"two" <script>window.hacked = 1</script>', "<b>one</b>"]
    assert len(keys[2]) == 80 and keys[2].endswith("…")
    assert "</script><i>town</i>" in page.locator("#colour option").all_inner_texts()
