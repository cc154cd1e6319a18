"""Scores of the paper, read from paper.toml."""

import tomllib
from functools import cache
from importlib.resources import files
from typing import NamedTuple


class Quoted(NamedTuple):
    """Mean test score and deviation in percent, and the table of the paper that prints them."""

    mean: float
    deviation: float
    table: int


def paper_figure(method: str, dataset: str) -> Quoted | None:
    """The paper's score of a method on a data set; None if it has none."""
    for number, table in _tables().items():
        if dataset in table.get(method, {}):
            mean, deviation = table[method][dataset]
            return Quoted(mean, deviation, int(number.removeprefix("table")))
    return None


@cache
def _tables() -> dict[str, dict[str, dict[str, list[float]]]]:
    return tomllib.loads(files("spgcl.report").joinpath("paper.toml").read_text(encoding="utf-8"))
