"""The paper's figures, read from paper.toml."""

import tomllib
from functools import cache
from importlib.resources import files
from typing import NamedTuple


class Quoted(NamedTuple):
    """A mean test score in percent and its deviation, as the paper prints them, and in which table."""

    mean: float
    deviation: float
    table: int


def paper_figure(method: str, dataset: str) -> Quoted | None:
    """What the paper reports of a method on a data set; None where it has no figure."""
    for number, table in _tables().items():
        if dataset in table.get(method, {}):
            mean, deviation = table[method][dataset]
            return Quoted(mean, deviation, int(number.removeprefix("table")))
    return None


@cache
def _tables() -> dict[str, dict[str, dict[str, list[float]]]]:
    return tomllib.loads(files("spgcl.report").joinpath("paper.toml").read_text(encoding="utf-8"))
