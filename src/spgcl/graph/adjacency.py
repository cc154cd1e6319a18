"""From a list of edges to an adjacency matrix."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spgcl.errors import InputError
from spgcl.graph.checks import checked_end_points, checked_weights

NO_EDGES = "the graph has no edges (self loops are ignored); add at least one"
INFINITE_SUM = "the summed weights of a repeated edge exceed float32; rescale the weights"


def adjacency_of(
    sources: NDArray[Any],
    targets: NDArray[Any],
    num_nodes: int,
    *,
    weights: NDArray[Any] | None,
    directed: bool,
) -> tuple[sparse.csr_array, list[str]]:
    """The adjacency matrix of checked edges, its columns sorted per row, and what was changed on the way.

    Self loops are dropped, repeated edges are merged, and undirected edges are stored in both directions.
    Entries are float32 weights, or True without weights.
    """
    sources, targets = checked_end_points(sources, targets, num_nodes)
    num_edges = len(sources)
    values = np.ones(num_edges, np.bool_) if weights is None else checked_weights(weights, num_edges)
    loops = sources == targets
    if loops.any():
        sources, targets, values = sources[~loops], targets[~loops], values[~loops]
    if not len(sources):
        raise InputError(NO_EDGES)
    matrix = sparse.coo_array((values, (sources, targets)), shape=(num_nodes, num_nodes)).tocsr()
    if matrix.nnz < len(sources) and not np.isfinite(matrix.data).all():
        raise InputError(INFINITE_SUM)
    num_given = matrix.nnz
    if not directed:
        backward = matrix.T.tocsr()
        matrix = matrix + backward if weights is None else matrix.maximum(backward)
    matrix.sort_indices()
    notes = changes(int(np.count_nonzero(loops)), len(sources) - num_given, matrix.nnz - num_given)
    return matrix, notes


def changes(loops: int, repeated: int, one_way: int) -> list[str]:
    """What was changed on the way from a list of edges to an adjacency matrix, in words."""
    notes = []
    if loops:
        notes.append(f"{loops:,} self loops dropped")
    if repeated:
        notes.append(f"{repeated:,} repeated edges merged")
    if one_way:
        notes.append(
            f"{one_way:,} edges listed one way only now go both ways (directed=True or --directed keeps them)"
        )
    return notes
