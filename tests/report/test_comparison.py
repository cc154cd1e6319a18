"""Several runs on one page: scores, curves, and only the settings that differ."""

import json
import re
import shutil
from pathlib import Path

import pytest
from commands import answer, output, refusal, settings
from page_checks import OVERLAPS, TICKS

from spgcl.cli import run
from spgcl.report.comparison import Entry, compare_runs, run_names
from spgcl.report.write import silent
from spgcl.runs.record import read_run

QUICK = ["--threads", "1", "--method", "spgcl", *settings(seeds=16, pool_size=64), "--observe", "2"]


@pytest.fixture(scope="module")
def several(people, fitted, tmp_path_factory) -> list[Path]:
    """The evaluated run on people and two others, one without a score, one of another method."""
    folder = tmp_path_factory.mktemp("several")
    first = shutil.copytree(fitted, folder / "first")
    other, third = folder / "run", folder / "dgi"
    wide = ["--set", "hidden=16", "--seed", "1"]
    assert run(["fit", *people.graph, "--steps", "4", *wide, "--out", str(other), *QUICK]) == 0
    plain = ["--method", "dgi", "--set", "hidden=8", "--threads", "1"]
    assert run(["fit", *people.graph, "--steps", "4", *plain, "--out", str(third)]) == 0
    return [first, other, third]


def content_of(several) -> dict:
    evaluation = json.loads((several[0] / "eval.json").read_text())
    records = [evaluation, None, None]
    entries = [Entry(path, read_run(path), found) for path, found in zip(several, records, strict=True)]
    return compare_runs(entries, "pca", silent)


def test_runs_are_named_by_the_shortest_different_ends_of_their_paths():
    assert run_names([Path("/a/x"), Path("/b/y")]) == ["x", "y"]
    assert run_names([Path("/a/x"), Path("/b/x")]) == ["a/x", "b/x"]
    assert run_names([Path("/a/x"), Path("/a/x")]) == ["x (1)", "x (2)"]


def test_the_page_compares_scores_curves_and_settings(several):
    content = content_of(several)
    names = run_names(several)
    scores, training, settings = content["sections"]
    dots, table = scores["items"]
    evaluation = json.loads((several[0] / "eval.json").read_text())
    assert [row["name"] for row in dots["rows"]] == [names[0]] and len(dots["rows"][0]["values"]) == 10
    assert [[row[0], *row[3:5]] for row in table["rows"]] == [
        [names[0], "edges", "spgcl"],
        [names[1], "edges", "spgcl"],
        [names[2], "edges", "dgi"],
    ]
    mean = f"{evaluation['mean']:.2f} ± {evaluation['std']:.2f}"
    assert [row[1:3] for row in table["rows"]] == [[mean, "tuned probe, 10 splits"], ["-", "-"], ["-", "-"]]
    charts = {item["title"]: item["series"] for item in training["items"]}
    assert [curve["name"] for curve in charts["Loss of spgcl"]] == names[:2]
    assert [curve["name"] for curve in charts["Loss of dgi"]] == names[2:]
    # A run has one colour throughout; its layers differ by their dashes.
    assert [curve["colour"] for curve in charts["Loss of dgi"]] == [2]
    assert [(curve["colour"], curve["dash"]) for curve in charts["Weight norm"]] == [
        (0, 0),
        (0, 1),
        (1, 0),
        (1, 1),
    ]
    (differing,) = settings["items"]
    rows = {row[0]: row[1:] for row in differing["rows"]}
    assert rows["hidden"] == ["8", "16", "8"] and rows["steps"] == ["6", "4", "4"]
    assert rows["seed"] == ["0", "1", "0"] and rows["method"] == ["spgcl", "spgcl", "dgi"]
    assert "graph digest" not in rows and "threads" not in rows


def test_equal_runs_differ_in_nothing(fitted):
    record = read_run(fitted)
    content = compare_runs([Entry(fitted, record), Entry(fitted, record)], "pca", silent)
    assert [item["kind"] for item in content["sections"][2]["items"]] == ["text"]


def data_of(path: Path) -> dict:
    return json.loads(re.search(r'id="data">(.*?)</script>', path.read_text(), re.DOTALL)[1])


@pytest.fixture(scope="module")
def page_file(several, people, tmp_path_factory) -> Path:
    """The page of the three, all scored with the labels of the first."""
    path = tmp_path_factory.mktemp("page") / "page.html"
    arguments = [
        *several,
        *people.labels,
        *people.nodes,
        "--out",
        path,
        "--projection",
        "pca",
        "--threads",
        1,
    ]
    assert run(["report", *map(str, arguments)]) == 0
    return path


def test_the_command_writes_the_comparison(several, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    record = answer(capsys, "report", *several[:2], "--projection", "pca")
    assert record["report"] == "comparison.html" and record["runs"] == [str(path) for path in several[:2]]
    assert data_of(tmp_path / "comparison.html")["title"] == "2 runs compared"
    assert "x.csv" in refusal(capsys, "report", *several, "--nodes", "x.csv")


def test_all_runs_are_scored_by_one_probe_beside_features_and_each_other(several, page_file):
    names, records = run_names(several), [json.loads((path / "eval.json").read_text()) for path in several]
    # That of the first, which was scored before.
    assert [record["protocol"] for record in records] == ["tuned"] * 3
    scores, maps, _, settings = data_of(page_file)["sections"]
    dots, differences, table = scores["items"]
    without = ["majority class", "raw features, no training", "smoothed features, no training"]
    assert [row["name"] for row in dots["rows"]] == [*names, *without]
    assert [row["colour"] for row in dots["rows"]] == [0, 1, 2, None, None, None]
    tests = {
        name: [one["test"] for one in record["splits"]] for name, record in zip(names, records, strict=True)
    }
    validation = [sum(one["validation"] for one in record["splits"]) for record in records]
    best = names[validation.index(max(validation))]
    assert best in scores["text"] and best in differences["title"]
    for row in differences["rows"][:2]:
        gaps = [one - other for one, other in zip(tests[row["name"]], tests[best], strict=True)]
        assert row["values"] == pytest.approx(gaps, abs=1e-3) and row["colour"] == names.index(row["name"])
        assert row["text"].endswith(f"above in {sum(gap > 0 for gap in gaps)} of 10")
    assert [row["name"] for row in differences["rows"][2:]] == ["raw features", "smoothed features"]
    assert table["runs"] == "rows" and settings["items"][0]["runs"] == "columns"
    assert maps["id"] == "map"


def test_the_probe_of_all_runs_can_be_chosen(several, people, tmp_path, capsys):
    two = [shutil.copytree(path, tmp_path / path.name) for path in several[1:]]
    given = [*people.labels, "--out", tmp_path / "page.html", "--projection", "pca", "--threads", 1]
    output(capsys, "report", *two, *given, "--protocol", "paper")
    assert [json.loads((path / "eval.json").read_text())["protocol"] for path in two] == ["paper"] * 2
    assert "--protocol" in refusal(capsys, "report", *two, *given, "--protocol", "other")


def test_a_run_whose_graph_is_gone_is_compared_without_a_map(several, tmp_path, capsys):
    lost = shutil.copytree(several[0], tmp_path / "lost")
    record = json.loads((lost / "run.json").read_text())
    record["graph"]["source"] = str(tmp_path / "gone.csv")
    (lost / "run.json").write_text(json.dumps(record))
    page = tmp_path / "page.html"
    notes = output(capsys, "report", several[0], lost, "--out", page, "--projection", "pca", "--threads", 1)[
        1
    ]
    assert f"{lost} has no map" in notes
    content = data_of(page)
    assert [view["colour"] for view in content["map"]["views"]] == [0]
    assert len(content["sections"][0]["items"][-1]["rows"]) == 2


@pytest.mark.parametrize("width", [360, 800, 1400])
def test_the_comparison_opens_in_a_browser(several, page_file, visit, width):
    page = visit(page_file, width=width)
    assert page.locator("h2").all_inner_texts() == ["Scores", "Maps", "Training", "Settings that differ"]
    assert page.locator("#training .js-line").count() >= 3
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(OVERLAPS) == [] and max(page.evaluate(TICKS)) < 0.6
    # The score of every run is in view without scrolling its table.
    for row in page.locator("#scores tbody tr").all():
        score, frame = row.locator("td").nth(1).bounding_box(), page.locator("#scores .scroll").bounding_box()
        assert score["x"] >= frame["x"] and score["x"] + score["width"] <= frame["x"] + frame["width"]


def test_maps_share_the_selection_and_colours_are_those_of_the_runs(several, page_file, visit):
    page = visit(page_file)
    names = run_names(several)
    assert [title.strip() for title in page.locator(".map-frame h3").all_inner_texts()] == names
    marks = "[...document.querySelectorAll('{} path')].map((path) => getComputedStyle(path).fill)"
    colours = page.evaluate(marks.format(".map-frame h3"))
    assert len(set(colours)) == 3
    for part in ("#scores tbody", "#settings thead", "#scores .item:first-child .name"):
        assert page.evaluate(marks.format(part)) == colours
    page.locator("#theme").click()
    assert (
        page.evaluate(marks.format("#scores tbody"))
        == page.evaluate(marks.format(".map-frame h3"))
        != colours
    )
    page.fill("#search", "p7")
    page.press("#search", "Enter")
    assert page.locator("#node ol").count() == 3
    rings = "nodeMap.views.map((view) => [view.plot.data.at(-1).x[0], view.x[nodeMap.ids.indexOf('p7')]])"
    assert all(ring == node for ring, node in page.evaluate(rings))
    page.evaluate("nodeMap.choose([1, 2, 3])")
    bright = (
        "nodeMap.views.map((view) => view.plot.data.flatMap((trace) => trace.selectedpoints ?? []).length)"
    )
    assert page.evaluate(bright) == [3, 3, 3]
    choices = page.locator("#colour option").all_inner_texts()
    assert choices[0] == "label" and choices[-2:] == ["age", "town"]
    assert [f"first split, {name}" in choices for name in names] == [True] * 3


def test_hostile_names_are_text_in_a_comparison(hostile_run, visit, tmp_path, capsys):
    other = shutil.copytree(hostile_run, tmp_path / "<b>bold" / "run")
    path = tmp_path / "page.html"
    output(capsys, "report", hostile_run, other, "--out", path, "--projection", "pca", "--threads", 1)
    page = visit(path)
    assert page.locator(".map-frame h3").nth(1).inner_text().strip() == "<b>bold/run"
    page.fill("#search", "n7")
    page.press("#search", "Enter")
    assert page.locator("main b, main i, main img, main a, main script").count() == 0
