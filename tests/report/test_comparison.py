"""Several runs on one page: scores, curves, and only the settings that differ."""

import json
import re
from pathlib import Path

import pytest
from commands import answer, output, refusal, settings

from spgcl.cli import run
from spgcl.report.comparison import compare_runs, run_names
from spgcl.runs.record import read_run

QUICK = ["--threads", "1", *settings(seeds=16, pool_size=64), "--observe", "2"]


@pytest.fixture(scope="module")
def several(people, fitted, tmp_path_factory) -> list[Path]:
    """The evaluated run on people and two others, one without a score, one of another method."""
    folder = tmp_path_factory.mktemp("several")
    other, third = folder / "run", folder / "dgi"
    wide = ["--set", "hidden=16", "--seed", "1"]
    assert run(["fit", *people.graph, "--steps", "4", *wide, "--out", str(other), *QUICK]) == 0
    plain = ["--method", "dgi", "--set", "hidden=8", "--threads", "1"]
    assert run(["fit", *people.graph, "--steps", "4", *plain, "--out", str(third)]) == 0
    return [fitted, other, third]


def content_of(several) -> dict:
    evaluation = json.loads((several[0] / "eval.json").read_text())
    records = [evaluation, None, None]
    return compare_runs([(f, read_run(f), r) for f, r in zip(several, records, strict=True)])


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
    assert [row[:3] for row in table["rows"]] == [
        [names[0], "edges", "spgcl"],
        [names[1], "edges", "spgcl"],
        [names[2], "edges", "dgi"],
    ]
    mean = f"{evaluation['mean']:.2f} ± {evaluation['std']:.2f} (10 splits)"
    assert [row[3] for row in table["rows"]] == [mean, "-", "-"]
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
    content = compare_runs([(fitted, record, None), (fitted, record, None)])
    assert [item["kind"] for item in content["sections"][2]["items"]] == ["text"]


def test_the_command_writes_the_comparison(several, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    record = answer(capsys, "report", *several[:2])
    assert record["report"] == "comparison.html" and record["runs"] == [str(path) for path in several[:2]]
    data = re.search(r'id="data">(.*?)</script>', (tmp_path / "comparison.html").read_text(), re.DOTALL)[1]
    assert json.loads(data)["title"] == "2 runs compared"
    assert "--nodes" in refusal(capsys, "report", *several, "--nodes", "x.csv")


def test_the_comparison_opens_in_a_browser(several, visit, tmp_path, capsys):
    page_file = tmp_path / "page.html"
    output(capsys, "report", *several, "--out", page_file)
    for width in (360, 1400):
        page = visit(page_file, width=width)
        assert page.locator("h2").all_inner_texts() == ["Scores", "Training", "Settings that differ"]
        assert page.locator("#training .js-line").count() >= 3
        assert page.evaluate("document.documentElement.scrollWidth") <= width
