"""Labels of a user's nodes, for evaluation only."""

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spgcl.errors import InputError
from spgcl.graph import Graph
from spgcl.io.draft import positions_of
from spgcl.io.features import TABLES, read_npy
from spgcl.io.opening import require_file, suffix_of


def read_labels(
    path: str | PathLike[str], graph: Graph, *, id_column: str | None = None
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Read one class a node, for every node of `graph`.

    Args:
        path: A table (.csv, .tsv, .txt, .parquet) of node id and label, or an .npy of labels in row order.
        graph: The graph whose nodes are labelled.
        id_column: Column of node ids, else the first.

    Returns:
        Labels 0 ... C - 1 in the graph's row order, and the names of the classes, sorted.
    """
    file = Path(path)
    require_file(file)
    if suffix_of(file) == ".npy":
        values = _read_array(file, graph)
    elif suffix_of(file) in TABLES:
        values = _read_label_table(file, graph, id_column)
    else:
        raise InputError(f"{file}: cannot read labels from {file.suffix!r}; use {', '.join(TABLES)} or .npy")
    classes, labels = np.unique(values, return_inverse=True)
    if len(classes) < 2:
        raise InputError(
            f"{file}: all nodes have the label {classes.tolist()[0]!r}; evaluation needs two classes"
        )
    return labels.astype(np.int64), tuple(str(name) for name in classes.tolist())


def _read_array(path: Path, graph: Graph) -> NDArray[Any]:
    values = read_npy(path)
    if values.shape != (graph.num_nodes,):
        raise InputError(f"{path}: labels of shape {values.shape}, but the graph has {graph.num_nodes} nodes")
    if not _are_row_numbers(graph.node_ids):
        node = graph.node_ids[:1].tolist()[0]
        raise InputError(
            f"{path}: rows of an .npy are nodes 0 to {graph.num_nodes - 1}, but this graph has ids such as "
            f"{node!r}; give the labels as a table by id"
        )
    if values.dtype.kind == "f":
        bad = ~np.isfinite(values) | (values != np.floor(values))
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(
                f"{path}, row {row}: {values[row]} is not a class; give every node a whole number"
            )
        values = values.astype(np.int64)
    if values.dtype.kind not in "biuU":
        raise InputError(f"{path}: labels of type {values.dtype}; use integers or text")
    return np.asarray(values[graph.node_ids])


def _are_row_numbers(node_ids: NDArray[Any]) -> bool:
    return node_ids.dtype.kind == "i" and np.array_equal(np.sort(node_ids), np.arange(len(node_ids)))


def _read_label_table(path: Path, graph: Graph, id_column: str | None) -> NDArray[Any]:
    from spgcl.io.tables import read_ids, read_table

    table = read_table(path, named_columns=id_column is not None)
    key = table.find(id_column) if id_column is not None else 0
    others = [place for place in range(len(table.columns)) if place != key]
    if len(others) != 1:
        found = ", ".join(repr(table.names[place]) for place in others[:6]) or "none"
        raise InputError(f"{path}: one column of labels is needed beside {table.names[key]!r}, found {found}")
    ids, values = read_ids(table, key), read_ids(table, others[0], what="label")
    rows = positions_of(ids, graph.node_ids)
    if (rows < 0).any():
        index = int(np.argmin(rows))
        node = ids[index : index + 1].tolist()[0]
        raise InputError(f"{path}, row {table.row(index)}: node {node!r} is not in the graph; drop the row")
    return _one_a_node(table, graph, rows, values)


def _one_a_node(table: Any, graph: Graph, rows: NDArray[np.int64], values: NDArray[Any]) -> NDArray[Any]:
    index_of_row = np.full(graph.num_nodes, -1)
    index_of_row[rows] = np.arange(len(rows))
    again = np.flatnonzero(index_of_row[rows] != np.arange(len(rows)))
    if len(again):
        first, last = int(again[0]), int(index_of_row[rows[again[0]]])
        raise InputError(
            f"{table.path}, row {table.row(last)}: node {graph.node_ids[rows[first]]!s} again, first in row "
            f"{table.row(first)}; keep one row a node"
        )
    if (index_of_row < 0).any():
        missing = graph.node_ids[int(np.argmin(index_of_row))]
        count = np.count_nonzero(index_of_row < 0)
        raise InputError(f"{table.path}: no label for node {missing!s} ({count:,} missing); label every node")
    return np.asarray(values[index_of_row])
