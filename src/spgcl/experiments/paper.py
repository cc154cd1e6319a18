"""The paper's figures, beside which ours are shown."""

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from spgcl.experiments.plan import Plan
from spgcl.report.paper import paper_figure


def printed(table: str) -> dict[str, Any]:
    """A table of the paper, by row and graph."""
    found: dict[str, Any] = _paper().get(table, {})
    return found


def printed_score(plan: Plan, row: str, graph: str) -> float | None:
    """The paper's score of a row of a plan on a graph."""
    method = next((run.method for run in plan.runs if run.row == row), "")
    if row in plan.view.get("unprinted", ()):
        return None
    if (known := paper_figure(method, graph)) and plan.view.get("printed") == "scores":
        return known.mean
    figure: float | None = printed(plan.name).get(row, {}).get(graph)
    return figure


def claimed() -> dict[str, str]:
    """What the paper claims, by the name of the check of it."""
    found: dict[str, str] = _paper()["claims"]
    return found


def inconsistencies() -> list[str]:
    """Where the paper contradicts itself, or the data."""
    found: list[str] = _paper()["inconsistencies"]
    return found


@cache
def _paper() -> dict[str, Any]:
    return tomllib.loads(files("spgcl.experiments").joinpath("paper.toml").read_text(encoding="utf-8"))
