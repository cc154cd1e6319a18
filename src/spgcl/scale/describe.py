"""A graph on disk as plain values, read block by block."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from spgcl.evaluation.statistics import degree_figures
from spgcl.scale.store import Store


def describe_store(store: Store) -> dict[str, Any]:
    """Size, degrees, components and bytes on disk; as `spgcl.evaluation.statistics.describe` in memory."""
    degrees = np.diff(store.rows)
    touched = degrees > 0
    component: NDArray[np.integer[Any]] = np.arange(store.num_nodes)
    filled = 0
    for start, stop in store.bounds:
        near = store.columns[store.rows[start] : store.rows[stop]]
        touched[near] = True
        filled += int(np.count_nonzero(store.features[start:stop]))
        component = _joined(component, np.repeat(np.arange(start, stop), degrees[start:stop]), near)
    return {
        "nodes": store.num_nodes,
        "edges": store.num_edges,
        "features": store.num_features,
        "feature_density": filled / (store.num_nodes * store.num_features),
        "directed": store.directed,
        "weighted": store.weights is not None,
        "degree": degree_figures(degrees),
        "isolated_nodes": int(np.count_nonzero(~touched)),
        "connected_components": int(component.max()) + 1,
        "memory_bytes": store.bytes,
    }


def _joined(
    component: NDArray[np.integer[Any]], sources: NDArray[np.int64], targets: NDArray[Any]
) -> NDArray[np.integer[Any]]:
    """The components after some more edges."""
    ends = component[sources], component[targets]
    apart = ends[0] != ends[1]
    if not apart.any():
        return component
    count = int(component.max()) + 1
    edges = sparse.coo_array(
        (np.ones(np.count_nonzero(apart), np.bool_), (ends[0][apart], ends[1][apart])), shape=(count, count)
    )
    _, joined = csgraph.connected_components(edges.tocsr(), directed=False)
    return np.asarray(joined[component])
