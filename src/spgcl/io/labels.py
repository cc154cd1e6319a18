"""Labels of a user's nodes, for evaluation and supervised methods only."""

from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spgcl.errors import InputError
from spgcl.graph import Graph
from spgcl.io.arrow import from_arrow, to_arrow
from spgcl.io.draft import is_integer, positions_of
from spgcl.io.features import TABLES, read_npy
from spgcl.io.objects import as_matrix, is_frame
from spgcl.io.opening import suffix_of

if TYPE_CHECKING:
    from spgcl.io.tables import Table

# Cells of nodes without a label.
NO_LABEL = ("", "nan", "?")
# None, NaN and pandas' NA as text.
_NO_OBJECT = ("None", "nan", "<NA>")


def read_labels(
    source: Any,
    graph: Graph,
    *,
    id_column: str | None = None,
    label_column: str | None = None,
    if_there: bool = False,
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Read one class per node of `graph`.

    An empty cell, NaN and "?" mean that a node has no label. So does -1 if at least two other classes exist
    and none of them is negative; otherwise -1 is a class.

    Args:
        source: A table (.csv, .tsv, .txt, .parquet, .feather) of node id and label, or an .npy of labels in
            row order; or in memory a table, a dictionary from node to label, or one label per node.
        graph: The graph whose nodes are labelled.
        id_column: Column of node ids, else the one called `id`, else the first.
        label_column: Column of labels, else the only other one.
        if_there: Whether to take the first if there is no column `id_column`.

    Returns:
        Labels 0 ... C - 1 in the graph's row order, -1 for a node without one, and the names of the classes,
        sorted.
    """
    columns = (id_column, label_column)
    if not isinstance(source, str | PathLike):
        if isinstance(source, Mapping) or is_frame(source):
            values, known = _read_label_table(source, graph, columns, if_there=if_there)
            return number_classes(values, known, origin="the labels")
        return number_labels(source, graph.num_nodes, origin="the labels")
    file = Path(source)
    if suffix_of(file) == ".npy":
        values, known = _read_array(file, graph)
    elif suffix_of(file) in TABLES:
        values, known = _read_label_table(file, graph, columns, if_there=if_there)
    else:
        raise InputError(f"{file}: cannot read labels from {file.suffix!r}; use {', '.join(TABLES)} or .npy")
    return number_classes(values, known, origin=str(file))


def number_labels(labels: Any, num_nodes: int, *, origin: str) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Number the classes of an array, a tensor or a list in row order, by the rules of `read_labels`.

    None, too, means that a node has no label.
    """
    values = np.asarray(as_matrix(labels))
    if values.shape != (num_nodes,):
        raise InputError(
            f"{origin} has shape {values.shape}, but the graph has {num_nodes} nodes; give one class per node"
        )
    given = np.ones(num_nodes, dtype=np.bool_)
    if values.dtype.kind == "O":
        given = np.array([isinstance(value, str) or str(value) not in _NO_OBJECT for value in values])
        found = np.array(values[given].tolist())
        values = np.zeros(num_nodes, dtype=found.dtype)
        values[given] = found
    classes, known = known_classes(values, origin=origin)
    return number_classes(classes, known & given, origin=origin)


def number_classes(
    values: NDArray[Any], known: NDArray[np.bool_], *, origin: str
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Classes numbered in sorted order, -1 for none; see `read_labels` for -1 among the values."""
    if not known.any():
        raise InputError(f"{origin}: no node has a label; give labels of two classes")
    classes = np.unique(values[known])
    code: int | str = -1 if classes.dtype.kind == "i" else "-1"
    named = [name for name in classes.tolist() if name != code]
    # With one other class (1), -1 is the opposite class; with other negative ones, part of a scale.
    if 2 <= len(named) < len(classes) and not any(isinstance(name, int) and name < 0 for name in named):
        known, classes = known & (values != code), classes[classes != code]
    if len(classes) < 2:
        raise InputError(
            f"{origin}: all nodes have the label {classes.tolist()[0]!r}; give labels of two classes"
        )
    labels = np.full(len(values), -1, dtype=np.int64)
    labels[known] = np.searchsorted(classes, values[known])
    return labels, tuple(str(name) for name in classes.tolist())


def known_classes(values: NDArray[Any], *, origin: str) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The classes in an array, as whole numbers or text, and which entries hold one."""
    if values.dtype.kind == "f":
        known = ~np.isnan(values)
        bad = known & (np.isinf(values) | (values != np.floor(values)))
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(
                f"{origin}, row {row}: {values[row]} is not a class; give whole numbers, or NaN for none"
            )
        return np.where(known, values, 0).astype(np.int64), known
    if values.dtype.kind not in "biuU":
        raise InputError(f"{origin}: labels of type {values.dtype}; use integers or text")
    if values.dtype.kind == "U":
        return values, ~np.isin(np.char.lower(np.char.strip(values)), NO_LABEL)
    return values, np.ones(len(values), dtype=np.bool_)


def _read_array(path: Path, graph: Graph) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    values = read_npy(path)
    if values.shape != (graph.num_nodes,):
        raise InputError(f"{path}: labels of shape {values.shape}, but the graph has {graph.num_nodes} nodes")
    ids = graph.node_ids
    if not is_integer(ids) or not np.array_equal(np.sort(ids), np.arange(len(ids))):
        raise InputError(
            f"{path}: rows of an .npy are nodes 0 to {graph.num_nodes - 1}, but this graph has ids such as "
            f"{ids.tolist()[0]!r}; give the labels as a table with an id column"
        )
    classes, known = known_classes(values, origin=str(path))
    return classes[ids], known[ids]


def _read_label_table(
    source: Any, graph: Graph, columns: tuple[str | None, str | None], *, if_there: bool
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    from spgcl.io.tables import node_rows, read_table

    id_column, label_column = columns
    table = read_table(source, *columns)
    if id_column is not None and if_there and id_column not in table.names:
        # Without that name, nothing tells that there is a header.
        table, id_column = read_table(source, label_column), None
    key = table.key(id_column)
    if not table.headed and _names_columns(table, key, graph):
        table = read_table(source, named_columns=True)
    path, column = table.path, _label_column(table, key, label_column)
    nodes = node_rows(table, key, graph)
    rows = np.full(graph.num_nodes, -1)
    rows[nodes] = np.arange(len(nodes))
    if (rows < 0).any():
        missing, count = graph.node_ids[int(np.argmin(rows))], np.count_nonzero(rows < 0)
        raise InputError(
            f"{path}: no label for node {missing!s} ({count:,} missing); give every node a row, with an "
            "empty cell for no label"
        )
    values, known = _read_cells(table, column)
    return values[rows], known[rows]


def _label_column(table: "Table", key: int, name: str | None) -> int:
    if name is not None:
        column = table.find(name)
        if column == key:
            raise InputError(f"{table.path}: column {name!r} cannot hold both ids and labels; name two")
        return column
    others = table.others(key)
    if len(others) != 1:
        found = ", ".join(repr(table.names[column]) for column in others[:6]) or "none"
        raise InputError(
            f"{table.path}: expected one column of labels besides {table.names[key]!r}, found {found}; "
            "name it (--label COLUMN)"
        )
    return others[0]


def _names_columns(table: "Table", key: int, graph: Graph) -> bool:
    """Whether a first row that was read as data is a header: it is text, and its node is not in the graph.

    The other column does not matter: a class may have the name of its column.
    """
    from spgcl.io.text import NAMES_OF_COLUMNS, is_number

    cells = [(column[0].as_py() or "").strip() for column in table.columns]
    if any(is_number(cell) for cell in cells):
        return False
    name = cells[key]
    if name.lower() in NAMES_OF_COLUMNS and table.columns[key].to_pylist().count(name) > 1:
        return True
    return bool(positions_of(np.array([name], dtype=object), graph.node_ids)[0] < 0)


def _read_cells(table: "Table", column: int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Classes of a column, and which cells hold one; the others get any class, which is not used."""
    import pyarrow as pa
    from pyarrow import compute

    from spgcl.io.tables import read_ids

    cells = table.columns[column]
    empty = compute.is_null(cells, nan_is_null=True)
    if pa.types.is_string(cells.type):
        words = compute.utf8_lower(compute.utf8_trim_whitespace(cells))
        empty = compute.or_(empty, compute.is_in(words, to_arrow(np.array(NO_LABEL))))
    known = ~from_arrow(empty)
    if not known.any():
        return np.zeros(len(known), dtype=np.int64), known
    columns = [*table.columns]
    columns[column] = cells.filter(compute.invert(empty))
    found = read_ids(replace(table, columns=columns), column, what="label")
    return found[np.maximum(np.cumsum(known) - 1, 0)], known
