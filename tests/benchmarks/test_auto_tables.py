"""Tables about auto from lines whose outcome is known."""

from xml.etree import ElementTree

import auto_tables
import pytest
from markdown import NO_RESULTS
from regret_figure import MOST, regret_figure

from spgcl.evaluation.verdict import NEARBY

EMPTY = (auto_tables.beside_table, auto_tables.ablation_table, auto_tables.grid_text)


def scored(method, test, dataset="cora", given=None):
    scores = {probe: {"test": test, "validation": test} for probe in ("paper", "tuned")}
    return {
        **{"dataset": dataset, "method": method, "preset": None, "given": given or {}, "seed": 0},
        **{"scores": scores, "device": "cpu"},
    }


@pytest.mark.parametrize("made", EMPTY)
def test_without_results_the_tables_say_so(made):
    assert made([]) == NO_RESULTS
    assert auto_tables.choosing_table([], []) == NO_RESULTS


def test_few_labels_are_compared_with_the_best_other():
    tests = {"auto": 70.0, "auto, 512 columns": 69.0, "raw": 50.0, "smoothed": 71.0}
    lines = [
        {"dataset": "cora", "method": method, "labels_per_class": 5, "test": test}
        for method, test in tests.items()
    ]
    assert auto_tables.few_table(lines).splitlines()[2:] == ["| cora | 70.00 | 69.00 | 71.00 |"]
    assert auto_tables.few_table([]) == NO_RESULTS


def test_auto_stands_beside_defaults_and_the_best_without_training():
    lines = [
        scored("auto", 80.0),
        scored("spgcl", 78.5),
        scored("raw", 50.0),
        scored("smoothed", 81.0),
        scored("smoothed", 82.0, given={"joined": "true"}),
        scored("auto", 70.0, "citeseer"),
        scored("spgcl", 71.0, "citeseer"),
    ]
    text = auto_tables.beside_table(lines)
    assert "| cora | 78.50 | 82.00 | 80.00 | 78.50 | 82.00 | 80.00 |" in text
    assert "| citeseer | 71.00 | - | 70.00 |" in text
    assert "+0.25 points under the tuned probe (least on citeseer, -1.00)" in text


def test_variants_are_differences_from_auto():
    lines = [
        {"dataset": name, "variant": variant, "validation": value}
        for name, values in (("cora", (80.0, 79.0)), ("citeseer", (70.0, 70.5)))
        for variant, value in zip(("auto", "without own"), values, strict=True)
    ]
    rows = auto_tables.ablation_table(lines).splitlines()
    assert rows[2:] == [
        "| cora | 80.00 | -1.00 |",
        "| citeseer | 70.00 | +0.50 |",
        "| mean | 75.00 | -0.25 |",
    ]


def test_regret_is_against_the_best_of_the_others():
    def line(graph, auto, **others):
        scores = {name: {"test": test} for name, test in {"auto": auto, **others}.items()}
        sizes = {"num_nodes": 150, "num_classes": 2, "average_degree": 4.0, "num_features": 8}
        parameters = {**sizes, "homophily": 0.1, "signal": 1.0}
        return {"graph": graph, "parameters": parameters, "chance": 50.0, "scores": scores}

    text = auto_tables.grid_text([line(0, 80.0, raw=81.0, spgcl=60.0), line(1, 80.0, raw=70.0, joined=83.0)])
    assert text.startswith("On 2 graphs, SP-GCL trained on 1 of them, the mean regret is 2.00 points")
    assert "on 50.0 % (standard error 35.4)" in text and "| 0.1 | 2.0 (2) |" in text
    behind = "| 1 | 150 | 2 | 4 | 0.1 | 8 | 1 | 50 | 70.00 | - | 83.00 | - | 80.00 |"
    assert text.splitlines()[-1] == behind and "\n| 0 | 150 |" not in text


def test_the_figure_has_a_dot_per_graph_higher_the_further_auto_is_ahead():
    def line(graph, auto, best):
        scores = {name: {"test": test} for name, test in (("auto", auto), ("raw", best), ("joined", 50.0))}
        return {"graph": graph, "parameters": {"homophily": 0.1, "signal": 1.0}, "scores": scores}

    lines = [line(0, 80.0, 82.0), line(1, 80.0, 78.5), line(2, 60.0, 90.0), line(3, 60.0, 60.0 + MOST)]
    drawing = regret_figure(lines)
    found = {
        int(circle[0][0].text.split(":")[0].removeprefix("graph ")): float(circle[1])
        for circle in (
            (list(element), element.get("cy"))
            for element in ElementTree.fromstring(drawing).iter("{http://www.w3.org/2000/svg}circle")
        )
        if circle[0]
    }
    assert found[1] < found[0] < found[2] == found[3]
    assert drawing == regret_figure(lines[::-1])


def test_the_verdict_of_each_graph_stands_beside_its_scores():
    channels = {name: {"reliability": 0.1, "deviation": 0.0} for name in (*NEARBY, "own")}
    near = {"two hops": {"reliability": 0.3, "deviation": 0.0}}
    lines = [{"dataset": "cora", "channels": {**channels, **near}}]
    text = auto_tables.choosing_table(lines, [scored("raw", 60.0), scored("auto", 84.0)])
    assert "| cora | help | 0.10 | 0.30 | 60.00 | - | - | 84.00 |" in text
    lines[0]["channels"]["own"] = {"reliability": 0.4, "deviation": 0.0}
    assert "| cora | say less | 0.40 |" in auto_tables.choosing_table(lines, [])
