"""Features computed from the structure alone, for graphs without features."""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spgcl.errors import InputError
from spgcl.graph import Graph
from spgcl.graph.checks import frozen
from spgcl.graph.propagate import inverse

# Relations are counted by the reader of triples, see `spgcl.io.relations`.
Structural = Literal["degree", "spectral", "relations"]

SPECTRAL_DIMENSION = 64
# Below this many nodes a dense eigensolver is exact, quick and small.
DENSE_NODES = 256
SPARE_VECTORS = 16
FILTER_DEGREE = 12
# Features need no exact eigenvectors: a cluster of close eigenvalues may stay a mixture.
MOST_ROUNDS = 10
TOLERANCE = 1e-3


def with_structural(graph: Graph, structural: Structural) -> Graph:
    """The graph with features computed from its edges instead of its own."""
    if structural == "relations":
        raise InputError(
            "relations are counted when triples are read, not in a part of the edges (--hold-out-edges); "
            "use --structural degree"
        )
    if structural == "degree":
        made = degree_features(graph.adjacency, directed=graph.directed)
        names = degree_names(directed=graph.directed)
    else:
        made = spectral_features(graph.adjacency)
        names = spectral_names(made.shape[1])
    return graph.with_features(frozen(made), names)


def degree_features(adjacency: sparse.csr_array, *, directed: bool = False) -> NDArray[np.float32]:
    """Four columns: a node's log(1 + degree), and the mean, minimum and maximum over its neighbours.

    Degrees count neighbours and ignore weights. A directed graph has the four columns for outgoing and again
    for incoming arcs. They are 0 for a node without neighbours.
    """
    outgoing = _degree_statistics(adjacency)
    if not directed:
        return outgoing
    return np.hstack([outgoing, _degree_statistics(adjacency.T.tocsr())])


def _degree_statistics(adjacency: sparse.csr_array) -> NDArray[np.float32]:
    sizes = np.log1p(np.diff(adjacency.indptr))
    return degree_statistics(adjacency.indptr, adjacency.indices, sizes, sizes)


def degree_names(*, directed: bool = False) -> tuple[str, ...]:
    """Names of the columns of `degree_features`."""
    kinds = ("outgoing", "incoming") if directed else ("",)
    parts = ("degree", "mean neighbour degree", "least neighbour degree", "largest neighbour degree")
    return tuple(f"{kind} {part}".strip() for kind in kinds for part in parts)


def spectral_names(count: int) -> tuple[str, ...]:
    """Names of the columns of `spectral_features`, which do not transfer to another graph."""
    return tuple(f"leading eigenvector {number}" for number in range(1, count + 1))


def degree_statistics(
    pointers: NDArray[Any], neighbours: NDArray[Any], own: NDArray[Any], sizes: NDArray[Any]
) -> NDArray[np.float32]:
    """The four columns of some rows: their sizes are `own`, those of all nodes `sizes`."""
    degrees = np.diff(pointers)
    columns = np.zeros((len(degrees), 4), dtype=np.float32)
    columns[:, 0] = own
    # Only nodes with neighbours: reduceat cannot have empty segments.
    some = degrees > 0
    starts = pointers[:-1][some]
    near = sizes[neighbours]
    if len(starts):
        columns[some, 1] = np.add.reduceat(near, starts) / degrees[some]
        columns[some, 2] = np.minimum.reduceat(near, starts)
        columns[some, 3] = np.maximum.reduceat(near, starts)
    return columns


def spectral_features(
    adjacency: sparse.csr_array, dimension: int = SPECTRAL_DIMENSION
) -> NDArray[np.float32]:
    """Leading eigenvectors of D^-1/2 A D^-1/2, at most `dimension` columns, largest eigenvalue first.

    Direction is ignored, weights are used. Columns are scaled by the square root of the number of nodes, and
    the first entry of largest magnitude in each is positive. Isolated nodes are 0. Results are deterministic.
    """
    num_nodes = adjacency.shape[0]
    dimension = min(dimension, max(num_nodes - 2, 1))
    matrix = _normalised(adjacency)
    if num_nodes <= DENSE_NODES:
        vectors = np.linalg.eigh(matrix.toarray())[1][:, ::-1][:, :dimension]
    else:
        vectors = _leading_eigenvectors(matrix, dimension)
    # Eigenvectors of eigenvalue 0 would distinguish isolated nodes, which the graph does not.
    vectors = vectors * np.sqrt(num_nodes) * (np.diff(matrix.indptr) > 0)[:, None]
    # Rounded, so that the last bits of nearly equal entries do not decide the sign.
    largest = np.argmax(np.abs(vectors).round(6), axis=0)
    signs = np.where(vectors[largest, np.arange(dimension)] < 0, -1.0, 1.0)
    return np.asarray(vectors * signs, dtype=np.float32)


def _normalised(adjacency: sparse.csr_array) -> sparse.csr_array:
    matrix = sparse.csr_array(adjacency.maximum(adjacency.T), dtype=np.float64)
    diagonal = sparse.diags_array(inverse(np.sqrt(matrix.sum(axis=1))))
    return (diagonal @ matrix @ diagonal).tocsr()


def _leading_eigenvectors(matrix: sparse.csr_array, dimension: int) -> NDArray[np.float64]:
    """Eigenvectors of the largest eigenvalues by subspace iteration with a Chebyshev filter.

    It works on a whole block: repeated eigenvalues (one per component) do not stall it, as they stall a
    Lanczos solver, and a fixed start makes it deterministic.
    """
    start = np.random.default_rng(0).standard_normal((matrix.shape[0], dimension + SPARE_VECTORS))
    values, vectors = _rayleigh_ritz(matrix, start)
    for _ in range(MOST_ROUNDS):
        residual = matrix @ vectors[:, :dimension] - vectors[:, :dimension] * values[:dimension]
        if np.linalg.norm(residual, axis=0).max() < TOLERANCE:
            break
        values, vectors = _rayleigh_ritz(matrix, _filtered(matrix, vectors, float(values[-1])))
    return np.asarray(vectors[:, :dimension])


def _rayleigh_ritz(
    matrix: sparse.csr_array, block: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    basis, _ = np.linalg.qr(block)
    values, rotation = np.linalg.eigh(basis.T @ (matrix @ basis))
    return values[::-1], basis @ rotation[:, ::-1]


def _filtered(matrix: sparse.csr_array, block: NDArray[np.float64], cut: float) -> NDArray[np.float64]:
    """The Chebyshev polynomial that stays within 1 on [-1, cut] and grows above, applied to a block."""
    centre, half = (cut - 1) / 2, (cut + 1) / 2
    before, now = block, (matrix @ block - centre * block) / half
    for _ in range(FILTER_DEGREE - 1):
        before, now = now, (matrix @ now - centre * now) * (2 / half) - before
    return np.asarray(now)
