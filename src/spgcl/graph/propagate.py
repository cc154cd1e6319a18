"""How features travel along edges: the normalised adjacency and k-hop smoothing."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spgcl.errors import InputError
from spgcl.graph import Graph
from spgcl.graph.checks import Features

# A CSR entry costs a float32 value and an int32 column, twice a dense float32.
_SPARSE_IS_SMALLER_BELOW = 0.5
_SAMPLED_ROWS = 512
_BLOCK_BYTES = 64 * 2**20


def normalised_adjacency(graph: Graph) -> sparse.csr_array:
    """The propagation matrix S of a graph, float32; its weights, if it has any, are the entries of A.

    Undirected graphs get D^-1/2 (A + I) D^-1/2, directed ones the row-normalised D^-1 (A + I).
    """
    scales = propagation_scales(graph, [(0, graph.num_nodes)])
    return normalised_rows(graph, scales, 0, graph.num_nodes)


class Edges(Protocol):
    """The edges of a graph, in memory or on disk: see `spgcl.graph.Graph`."""

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""

    @property
    def directed(self) -> bool:
        """Whether columns are out-neighbours only."""

    @property
    def rows(self) -> NDArray[np.integer[Any]]:
        """Row pointers."""

    @property
    def columns(self) -> NDArray[np.integer[Any]]:
        """Neighbours of every node."""

    @property
    def weights(self) -> NDArray[np.float32] | None:
        """Weight of every entry, or None."""


def looped_rows(graph: Edges, start: int, stop: int) -> sparse.csr_array:
    """Rows `start` to `stop` of A + I; only these rows of the graph are read."""
    rows = _adjacency_rows(graph, start, stop)
    return (rows + sparse.eye_array(*rows.shape, k=start, dtype=np.float32)).tocsr()


def _adjacency_rows(graph: Edges, start: int, stop: int) -> sparse.csr_array:
    first, last = int(graph.rows[start]), int(graph.rows[stop])
    values = np.ones(last - first, dtype=np.float32) if graph.weights is None else graph.weights[first:last]
    pointers = graph.rows[start : stop + 1] - graph.rows[start]
    shape = (stop - start, graph.num_nodes)
    return sparse.csr_array((values, graph.columns[first:last], pointers), shape=shape)


def propagation_scales(graph: Edges, bounds: Sequence[tuple[int, int]]) -> NDArray[np.float64]:
    """What the rows of A + I are multiplied with, and in an undirected graph its columns too.

    Rows are read block by block.
    """
    if graph.weights is None:
        return _scales(np.diff(graph.rows) + 1.0, directed=graph.directed)
    sums = [looped_rows(graph, *block).sum(axis=1, dtype=np.float64) for block in bounds]
    return _scales(np.concatenate(sums), directed=graph.directed)


def _scales(degrees: NDArray[np.float64], *, directed: bool) -> NDArray[np.float64]:
    # Every row of A + I holds at least one positive entry, so no degree is zero.
    return np.asarray(1 / degrees if directed else 1 / np.sqrt(degrees))


def normalised_rows(graph: Edges, scales: NDArray[np.float64], start: int, stop: int) -> sparse.csr_array:
    """Rows `start` to `stop` of S, by the scales of all rows."""
    looped = looped_rows(graph, start, stop)
    values = looped.data * np.repeat(scales[start:stop], np.diff(looped.indptr))
    if not graph.directed:
        values *= scales[looped.indices]
    looped.data = values.astype(np.float32)
    return looped


def transitions(graph: Edges) -> sparse.csr_array:
    """D^-1 A, float32: the mean over (out-)neighbours; rows of nodes without any are empty."""
    return transition_rows(graph, 0, graph.num_nodes)


def transition_rows(graph: Edges, start: int, stop: int) -> sparse.csr_array:
    """Rows `start` to `stop` of D^-1 A."""
    rows = _adjacency_rows(graph, start, stop)
    departures = rows.sum(axis=1, dtype=np.float64)
    return sparse.csr_array(sparse.diags_array(inverse(departures)) @ rows, dtype=np.float32)


def inverse(sums: NDArray[Any]) -> NDArray[Any]:
    """1 / sum for every row sum, and 0 for the sum of an empty row."""
    inverted = np.zeros_like(sums)
    np.divide(1, sums, out=inverted, where=sums > 0)
    return inverted


def smooth(graph: Graph, hops: int) -> Features:
    """Features after `hops` propagations, S^hops X.

    Sparse features stay sparse while that takes less memory, and then become dense block by block, so that
    the sparse and the dense form of a whole product are never in memory together.
    """
    if hops < 0:
        raise InputError(f"hops is {hops}; it must be 0 or more")
    current = graph.features
    if not hops:
        return current
    matrix = normalised_adjacency(graph)
    for _ in range(hops):
        current = _propagate(matrix, current)
    return current


def _propagate(matrix: sparse.csr_array, features: Features) -> Features:
    if not sparse.issparse(features):
        return np.asarray(matrix @ features, dtype=np.float32)
    if _density_of_product(matrix, features) < _SPARSE_IS_SMALLER_BELOW:
        return sparse.csr_array(matrix @ features)
    return _dense_product(matrix, features)


def _density_of_product(matrix: sparse.csr_array, features: sparse.csr_array) -> float:
    """Fraction of non-zero entries of the product, estimated from evenly spaced rows."""
    count = min(matrix.shape[0], _SAMPLED_ROWS)
    rows = np.linspace(0, matrix.shape[0] - 1, count).astype(np.int64)
    return float((matrix[rows] @ features).nnz / (count * features.shape[1]))


def _dense_product(matrix: sparse.csr_array, features: sparse.csr_array) -> Features:
    product = np.empty((matrix.shape[0], features.shape[1]), dtype=np.float32)
    block = max(1, _BLOCK_BYTES // (8 * features.shape[1]))
    for start in range(0, len(product), block):
        (matrix[start : start + block] @ features).toarray(out=product[start : start + block])
    return product
