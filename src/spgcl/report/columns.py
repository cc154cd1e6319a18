"""Columns of a user's table, by which nodes can be coloured."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spgcl.errors import InputError
from spgcl.report.charts import shorten

if TYPE_CHECKING:
    from spgcl.graph import Graph
    from spgcl.io.tables import Table

# More categories cannot be distinguished by colour and shape; the rarest are joined.
MOST_CATEGORIES = 24
_FEW_NUMBERS = 8


@dataclass(frozen=True, eq=False)
class Column:
    """One value per node.

    Attributes:
        name: What it is.
        values: Codes of categories (integers, -1 if unknown), or numbers (NaN if unknown).
        categories: Names of the codes; None for numbers.
        texts: The value of each node, where codes join several; else None.
    """

    name: str
    values: NDArray[Any]
    categories: tuple[str, ...] | None = None
    texts: tuple[str, ...] | None = None

    @property
    def skewed(self) -> bool:
        """Whether the middle half of the numbers covers less than a tenth of their range."""
        known = self.values[np.isfinite(self.values)]
        if self.categories is not None or not len(known):
            return False
        low, first, third, high = np.quantile(known, [0, 0.25, 0.75, 1])
        return bool(third - first < (high - low) / 10)


def categorised(name: str, texts: Sequence[str | None]) -> Column:
    """A column of text, None if unknown; if there are many values, the rarest are joined."""
    known = np.array([value is not None for value in texts])
    # Shortened first: NumPy gives all texts of an array the length of the longest.
    given = np.array([shorten(value) for value in texts if value is not None], dtype=str)
    found, indices, counts = np.unique(given, return_inverse=True, return_counts=True)
    categories = tuple(found.tolist())
    whole = None
    if len(found) > MOST_CATEGORIES:
        whole = tuple("unknown" if value is None else shorten(value) for value in texts)
        kept = np.sort(np.argsort(-counts, kind="stable")[: MOST_CATEGORIES - 1])
        joined = np.full(len(found), len(kept))
        joined[kept] = np.arange(len(kept))
        indices, categories = joined[indices], (*found[kept].tolist(), f"{len(found) - len(kept)} others")
    codes = np.full(len(texts), -1)
    codes[known] = indices
    return Column(name, codes, categories, whole)


def read_columns(path: Path, graph: "Graph", *, id_column: str | None = None) -> tuple[Column, ...]:
    """Every column of a table by node id: numbers as numbers, everything else as categories.

    Nodes that are not in the table have no value; rows of nodes that are not in the graph are an error.
    """
    from spgcl.io.tables import node_rows, read_table

    table = read_table(path, named_columns=True)
    key = table.find(id_column) if id_column is not None else 0
    rows, others = node_rows(table, key, graph), table.others(key)
    if not others:
        raise InputError(f"{path}: no column but {table.names[key]!r}; add one to colour nodes by")
    return tuple(_column(table, index, rows, graph.num_nodes) for index in others)


def _column(table: "Table", index: int, rows: NDArray[np.int64], num_nodes: int) -> Column:
    values = [None if value == "" else value for value in table.columns[index].to_pylist()]
    name = shorten(table.names[index])
    numbers = _numbers(values)
    if numbers is not None and len(np.unique(numbers[np.isfinite(numbers)])) > _FEW_NUMBERS:
        spread = np.full(num_nodes, np.nan)
        spread[rows] = numbers
        return Column(name, spread)
    texts: list[str | None] = [None] * num_nodes
    for row, value in zip(rows.tolist(), values, strict=True):
        texts[row] = None if value is None else str(value)
    return categorised(name, texts)


def _numbers(values: list[Any]) -> NDArray[np.float64] | None:
    """Values as numbers, NaN if missing; None if one is not a number, or an integer no float equals."""
    try:
        found = [float("nan") if value is None else float(value) for value in values]
    except (TypeError, ValueError, OverflowError):
        return None
    for value, number in zip(values, found, strict=True):
        if str(value).lstrip("+-").isdecimal() and int(value) != number:
            return None
    numbers = np.array(found)
    return np.where(np.isfinite(numbers), numbers, np.nan)
