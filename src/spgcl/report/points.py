"""The map as compact arrays: positions, colours, most similar nodes and neighbours."""

import base64
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from spgcl.engine.similarity import comparable_rows, unit_rows
from spgcl.evaluation.clustering import k_means
from spgcl.io import Coordinates
from spgcl.report.charts import Item, shorten
from spgcl.report.columns import Column
from spgcl.report.material import Material

LISTED = 10
# What became of a node in the first split.
TEST_OUTCOMES = ("right", "wrong", "not tested")
# The page lists this many neighbours of a node, and how many more there are.
_LINKED = 12
_DEFAULT_CLUSTERS = 8


def packed(values: NDArray[Any]) -> Item:
    """An array as little-endian bytes in base64, in the narrowest type that holds every value exactly."""
    if values.dtype.kind == "f":
        with np.errstate(over="ignore"):
            kind = "f4" if np.array_equal(values, values.astype(np.float32), equal_nan=True) else "f8"
    else:
        top = int(np.abs(values).max(initial=0))
        kind = "i1" if top < 2**7 else "i2" if top < 2**15 else "i4"
    raw = np.ascontiguousarray(values).astype(f"<{kind}").tobytes()
    return {"type": kind, "data": base64.b64encode(raw).decode("ascii")}


def map_data(material: Material, columns: Sequence[Column], views: Sequence[Item]) -> Item:
    """Everything that map.js draws: what the views share, and the views, see `view_data`."""
    shown = material.shown
    return {
        "total": material.graph.num_nodes,
        "directed": material.graph.directed,
        "ids": list(map(str, material.graph.node_ids[shown].tolist())),
        **_links(material),
        "colours": [_colours(column, shown) for column in columns],
        "views": list(views),
    }


def view_data(material: Material, plane: Coordinates) -> Item:
    """The nodes of one run as points of a plane, with their most similar nodes."""
    nearest, similarities = (part[:, :LISTED] for part in material.nearest)
    return {
        "projection": plane.projection,
        "x": packed(plane.points[:, 0]),
        "y": packed(plane.points[:, 1]),
        "listed": nearest.shape[1],
        "nearest": packed(nearest.ravel()),
        # The page shows three digits.
        "similarities": packed(np.rint(1000 * similarities.ravel()).astype(np.int64)),
    }


def all_columns(material: Material, of_runs: Sequence[Column]) -> list[Column]:
    """Columns for colouring the map: label, those of its runs, degree, and those of the user's table."""
    columns = [*of_runs, Column("degree", material.graph.degrees)]
    if material.labels is not None:
        columns.insert(0, Column("label", material.labels, tuple(map(shorten, material.names))))
    taken = {column.name for column in columns}
    for column in material.columns:
        name = f"{column.name} (table)" if column.name in taken else column.name
        columns.append(replace(column, name=name))
    return columns


def run_columns(
    material: Material, predicted: NDArray[np.int64] | None = None, run: str = ""
) -> list[Column]:
    """Clusters and, with predictions, classes and errors of the first split; a run's name ends theirs."""
    end = f", {run}" if run else ""
    clusters = _clusters(material)
    columns = [Column(clusters.name + end, clusters.values, clusters.categories)]
    if predicted is not None:
        codes = np.where(predicted < 0, 2, predicted != material.labels)
        names = tuple(map(shorten, material.names))
        columns = [
            Column(f"predicted{end}", predicted, names),
            Column(f"first split{end}", codes, TEST_OUTCOMES),
            *columns,
        ]
    return columns


def _links(material: Material) -> Item:
    """The first neighbours of every shown node, as positions in `shown`, one row after the other."""
    graph, shown = material.graph, material.shown
    rows = graph.adjacency[shown][:, shown]
    rows.sort_indices()
    counts = np.diff(rows.indptr)
    rank = np.arange(rows.nnz) - np.repeat(rows.indptr[:-1], counts)
    return {
        "degrees": packed(graph.degrees[shown]),
        "linked": packed(np.minimum(counts, _LINKED)),
        "links": packed(rows.indices[rank < _LINKED]),
    }


def _clusters(material: Material) -> Column:
    """Seeded k-means of the embeddings scaled to length one; as many clusters as classes, or eight."""
    rows = unit_rows(comparable_rows(torch.from_numpy(material.vectors[material.shown])))
    labels = material.labels
    count = _DEFAULT_CLUSTERS if labels is None else len(np.unique(labels[labels >= 0]))
    count = min(count, len(rows))
    codes = np.full(material.graph.num_nodes, -1)
    codes[material.shown] = k_means(rows, count, restarts=1, seed=0)
    return Column("cluster", codes, tuple(f"cluster {number}" for number in range(1, count + 1)))


def _colours(column: Column, shown: NDArray[np.int64]) -> Item:
    described = {"name": column.name, "values": packed(column.values[shown])}
    if column.categories is None:
        return {**described, "skewed": column.skewed}
    texts = {} if column.texts is None else {"texts": [column.texts[node] for node in shown.tolist()]}
    errors = column.categories is TEST_OUTCOMES
    return {**described, "names": list(column.categories), "errors": errors, **texts}
