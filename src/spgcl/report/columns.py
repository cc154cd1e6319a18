"""What nodes can be coloured by: columns of a user's table."""

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

# More categories than this cannot be told apart by colour and shape; the rarest become one.
MOST_CATEGORIES = 24
_FEW_NUMBERS = 8


@dataclass(frozen=True, eq=False)
class Column:
    """One value a node.

    Attributes:
        name: What it is.
        values: Codes (integers, -1 where unknown) of categories, or numbers (NaN where unknown).
        categories: Names of the codes; None for numbers.
        logarithmic: Whether colours follow the logarithm.
    """

    name: str
    values: NDArray[Any]
    categories: tuple[str, ...] | None = None
    logarithmic: bool = False


def categorised(name: str, texts: Sequence[str | None]) -> Column:
    """A column of text, None where unknown, its rarest values joined where there are many."""
    known = np.array([value is not None for value in texts])
    # Shortened first: one long text among many would make every one of the array as long.
    given = np.array([shorten(value) for value in texts if value is not None], dtype=str)
    found, places, counts = np.unique(given, return_inverse=True, return_counts=True)
    categories = tuple(found.tolist())
    if len(found) > MOST_CATEGORIES:
        kept = np.sort(np.argsort(-counts, kind="stable")[: MOST_CATEGORIES - 1])
        moved = np.full(len(found), len(kept))
        moved[kept] = np.arange(len(kept))
        places, categories = moved[places], (*found[kept].tolist(), f"{len(found) - len(kept)} others")
    codes = np.full(len(texts), -1)
    codes[known] = places
    return Column(name, codes, categories)


def read_columns(path: Path, graph: "Graph", *, id_column: str | None = None) -> tuple[Column, ...]:
    """Every column of a table by node id: numbers as numbers, all else as categories.

    Nodes that the table leaves out have no value. Rows of nodes that are not in the graph are an error.

    Args:
        path: A table (.csv, .tsv, .txt, .parquet).
        graph: The graph whose nodes are coloured.
        id_column: Column of node ids, else the first.
    """
    from spgcl.io.draft import positions_of
    from spgcl.io.tables import read_ids, read_table

    table = read_table(path, named_columns=True)
    key = table.find(id_column) if id_column is not None else 0
    ids = read_ids(table, key)
    rows = positions_of(ids, graph.node_ids)
    if (rows < 0).any():
        node = ids[int(np.argmin(rows)) :].tolist()[0]
        raise InputError(
            f"{path}, row {table.row(int(np.argmin(rows)))}: node {node!r} is not in the graph; drop the row"
        )
    _require_distinct(table, ids, rows)
    others = [place for place in range(len(table.columns)) if place != key]
    if not others:
        raise InputError(f"{path}: no column beside {table.names[key]!r} to colour nodes by; add one")
    return tuple(_column(table, place, rows, graph.num_nodes) for place in others)


def _require_distinct(table: "Table", ids: NDArray[Any], rows: NDArray[np.int64]) -> None:
    order = np.argsort(rows, kind="stable")
    again = order[1:][rows[order[1:]] == rows[order[:-1]]]
    if len(again):
        index = int(again.min())
        raise InputError(
            f"{table.path}, row {table.row(index)}: node {ids[index]!s} again; keep one row a node"
        )


def _column(table: "Table", place: int, rows: NDArray[np.int64], num_nodes: int) -> Column:
    values = [None if value == "" else value for value in table.columns[place].to_pylist()]
    name = shorten(table.names[place])
    numbers = _numbers(values)
    if numbers is not None and len(np.unique(numbers[np.isfinite(numbers)])) > _FEW_NUMBERS:
        spread = np.full(num_nodes, np.nan, dtype=np.float32)
        spread[rows] = numbers
        return Column(name, spread)
    texts: list[str | None] = [None] * num_nodes
    for row, value in zip(rows.tolist(), values, strict=True):
        texts[row] = None if value is None else str(value)
    return categorised(name, texts)


def _numbers(values: list[Any]) -> NDArray[np.float32] | None:
    """Values as numbers, NaN where one is missing; None when some are no numbers."""
    try:
        numbers = [float("nan") if value is None else float(value) for value in values]
    except (TypeError, ValueError):
        return None
    with np.errstate(over="ignore"):
        found = np.array(numbers, dtype=np.float32)
    return np.where(np.isfinite(found), found, np.float32("nan"))
