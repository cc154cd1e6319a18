"""From a list of edges to an adjacency matrix."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spgcl.errors import InputError
from spgcl.graph.checks import checked_end_points, checked_weights


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
    notes = []
    loops = sources == targets
    if loops.any():
        notes.append(f"{np.count_nonzero(loops):,} self loops dropped")
        sources, targets, values = sources[~loops], targets[~loops], values[~loops]
    if not len(sources):
        raise InputError("the graph has no edges (self loops are ignored); add at least one")
    matrix = sparse.coo_array((values, (sources, targets)), shape=(num_nodes, num_nodes)).tocsr()
    if matrix.nnz < len(sources):
        notes.append(f"{len(sources) - matrix.nnz:,} repeated edges merged")
        if not np.isfinite(matrix.data).all():
            raise InputError("the summed weights of a repeated edge exceed float32; rescale the weights")
    if not directed:
        num_given = matrix.nnz
        backward = matrix.T.tocsr()
        matrix = matrix + backward if weights is None else matrix.maximum(backward)
        if matrix.nnz > num_given:
            notes.append(
                f"{matrix.nnz - num_given:,} edges listed one way only now go both ways (directed=True or "
                "--directed keeps them)"
            )
    matrix.sort_indices()
    return matrix, notes
