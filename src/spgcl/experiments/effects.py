"""What the audit measured, as tables."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from spgcl.experiments.render import Cell, Table
from spgcl.experiments.results import Results

Record = Mapping[str, Any]
_RULES = {
    "last": "last",
    "validation": "by validation",
    "ties": "ties by test",
    "rising": "best test as validation rises",
    "test": "best test",
    "one_epoch": "best test, one epoch for all splits",
}


def effect_tables(results: Results) -> list[Table]:
    """The tables of the audit's plan."""
    return [epoch_table(results), mask_table(results), adjacency_table(results)]


def epoch_table(results: Results) -> Table:
    """Graphs and methods by the rule that chooses an epoch; what a rule adds to the choice by validation."""
    rows = []
    for method, graph, lines in _measured(results, "epochs"):
        for what, epochs in (("training", "evaluations"), ("probe", "")):
            if all(what in line for line in lines):
                means = {rule: fmean(line[what][rule] for line in lines) for rule in _RULES}
                honest = means["validation"]
                cells = [f"{means[rule]:.1f}" for rule in ("last", "validation")]
                cells += [f"{means[rule] - honest:+.1f}" for rule in list(_RULES)[2:]]
                name = f"{what}, {lines[0][epochs]} evaluations" if epochs else what
                rows.append([graph, method, name, *cells, str(len(lines))])
    title = "Test scores by the rule that chooses the epoch, and what rules that read test scores add"
    columns = ["graph", "method", "epochs of the", *_RULES.values(), "trainings"]
    return Table(title, columns, rows, text_columns=3)


def mask_table(results: Results) -> Table:
    """Graphs by their score, and the score if test masks are pooled."""
    rows = [
        [graph, method, *(f"{line[name]:.1f}" for name in ("test", "pooled", "trained"))]
        for method, graph, (line, *_) in _measured(results, "masks")
    ]
    columns = ["graph", "method", "own test mask", "all test masks", "of these trained on, %"]
    return Table("Test accuracy under the tuned probe", columns, rows, text_columns=2)


def adjacency_table(results: Results) -> Table:
    """Rows of the adjacency matrix and methods, by graphs."""
    plan = results.plan
    chosen = [run for run in plan.runs if run.measure in ("adjacency", "scores")]
    graphs = list(dict.fromkeys(run.graph for run in chosen))
    rows: list[list[Cell]] = []
    for name in dict.fromkeys(run.row for run in chosen):
        cells = [results.of_cell(name, graph) for graph in graphs]
        rows.append([name, *(_mean(lines) for lines in cells)])
    return Table("Test accuracy under the tuned probe", ["rows", *graphs], rows)


def adjacency_sentences(results: Results) -> list[str]:
    """A sentence per graph: how rows of its adjacency matrix compare with the best method beside them."""
    chosen = [run for run in results.plan.runs if run.measure in ("adjacency", "scores")]
    found: dict[str, dict[str, float]] = {}
    for run in chosen:
        if lines := results.of_cell(run.row, run.graph):
            found.setdefault(run.graph, {})["" if run.measure == "adjacency" else run.row] = _tuned(lines)
    sentences = []
    for graph, scores in found.items():
        rows = scores.pop("", None)
        if rows is not None and scores:
            best = max(scores, key=lambda name: scores[name])
            sentences.append(
                f"On {graph}, rows of the adjacency matrix without any features have {rows:.1f}, "
                f"{best} {scores[best]:.1f}."
            )
    return sentences


def _mean(lines: Sequence[Record]) -> str:
    return f"{_tuned(lines):.1f}" if lines else "-"


def _tuned(lines: Sequence[Record]) -> float:
    return fmean(line["scores"]["tuned"]["test"] for line in lines)


def _measured(results: Results, measure: str) -> list[tuple[str, str, list[Record]]]:
    """Method, graph and the lines of every cell of a measure that has any."""
    cells = dict.fromkeys(
        (run.row, run.method, run.graph) for run in results.plan.runs if run.measure == measure
    )
    found = ((method, graph, results.of_cell(row, graph)) for row, method, graph in cells)
    return [(method, graph, list(lines)) for method, graph, lines in found if lines]
