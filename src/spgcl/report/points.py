"""The map as compact arrays: where nodes are, what colours them, who is near and who is linked."""

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
# Neighbours of a node that the page names; it says how many more there are.
_LINKED = 12
_DEFAULT_CLUSTERS = 8
_LONGEST_ID = 60


def packed(values: NDArray[Any]) -> Item:
    """An array as little-endian bytes in base64, in the narrowest type that JavaScript can view."""
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
        # Thousandths are as fine as the page shows them.
        "similarities": packed(np.rint(1000 * similarities.ravel()).astype(np.int64)),
        **_links(material),
        "colours": [_colours(column, shown) for column in all_columns(material)],
    }


def all_columns(material: Material) -> list[Column]:
    """What the map can be coloured by: label, cluster, degree, and the columns of the user's table."""
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
    """The first neighbours of every shown node, as places among the shown, in compressed rows."""
    graph, shown = material.graph, material.shown
    places = np.full(graph.num_nodes, -1)
    places[shown] = np.arange(len(shown))
    degrees = graph.degrees[shown]
    starts = np.repeat(graph.rows[shown].astype(np.int64), degrees)
    within = np.arange(len(starts)) - np.repeat(np.cumsum(degrees) - degrees, degrees)
    links = places[graph.columns[starts + within]]
    owners = np.repeat(np.arange(len(shown)), degrees)[links >= 0]
    counts = np.bincount(owners, minlength=len(shown))
    rank = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
    kept = links[links >= 0][rank < _LINKED]
    return {
        "degrees": packed(degrees),
        "linked": packed(np.minimum(counts, _LINKED)),
        "links": packed(kept),
    }


def _clusters(material: Material) -> Column:
    """Seeded k-means of the embeddings with rows of norm 1, as many clusters as classes, or eight."""
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
