"""The map as compact arrays: positions, colours, most similar nodes and neighbours."""

import base64
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
# The page lists this many neighbours of a node, and how many more there are.
_LINKED = 12
_DEFAULT_CLUSTERS = 8
_LONGEST_ID = 60


def packed(values: NDArray[Any]) -> Item:
    """An array as little-endian bytes in base64, in the narrowest type that fits."""
    if values.dtype.kind == "f":
        kind = "f4"
    else:
        top = int(np.abs(values).max(initial=0))
        kind = "i1" if top < 2**7 else "i2" if top < 2**15 else "i4"
    raw = np.ascontiguousarray(values).astype(f"<{kind}").tobytes()
    return {"type": kind, "data": base64.b64encode(raw).decode("ascii")}


def map_data(material: Material, plane: Coordinates) -> Item:
    """Everything that map.js draws."""
    shown = material.shown
    nearest, similarities = (part[:, :LISTED] for part in material.nearest)
    return {
        "projection": plane.projection,
        "total": material.graph.num_nodes,
        "directed": material.graph.directed,
        "ids": [shorten(str(node), _LONGEST_ID) for node in material.graph.node_ids[shown].tolist()],
        "x": packed(plane.points[:, 0]),
        "y": packed(plane.points[:, 1]),
        "listed": nearest.shape[1],
        "nearest": packed(nearest.ravel()),
        # The page shows three digits.
        "similarities": packed(np.rint(1000 * similarities.ravel()).astype(np.int64)),
        **_links(material),
        "colours": [_colours(column, shown) for column in all_columns(material)],
    }


def all_columns(material: Material) -> list[Column]:
    """Columns for colouring the map: label, cluster, degree, and those of the user's table."""
    columns = []
    if material.labels is not None:
        columns.append(Column("label", material.labels, tuple(map(shorten, material.names))))
    columns.append(_clusters(material))
    columns.append(Column("degree", material.graph.degrees.astype(np.float32), logarithmic=True))
    taken = {column.name for column in columns}
    for column in material.columns:
        name = f"{column.name} (table)" if column.name in taken else column.name
        columns.append(Column(name, column.values, column.categories))
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
    values = column.values[shown]
    if column.categories is None:
        return {"name": column.name, "values": packed(values), "logarithmic": column.logarithmic}
    return {"name": column.name, "values": packed(values), "names": list(column.categories)}
