"""Sparse products with a graph on disk, some rows at a time: features carried along edges for k hops."""

from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from spgcl.engine.tensors import SparseMatrix, divided_by_row_sums
from spgcl.graph.propagate import normalised_rows, transition_rows
from spgcl.scale.arrays import DiskArray
from spgcl.scale.derived import Derived, Workers
from spgcl.scale.store import Store

# S = D^-1/2 (A + I) D^-1/2 (or its directed form), or P = D^-1 A.
Matrix = Literal["smoothing", "transitions"]
_CPU = torch.device("cpu")


def product_block(matrix: Matrix, factor: DiskArray, store: Store, index: int) -> Tensor:
    """A block of a product of the graph's matrix with an array on disk."""
    return times(matrix_rows(store, matrix, *store.bounds[index]), factor)


def divided_block(store: Store, index: int) -> NDArray[Any]:
    """A block of the features, rows divided by the sum of their absolute values."""
    start, stop = store.bounds[index]
    return np.asarray(divided_by_row_sums(np.array(store.features[start:stop], dtype=np.float32)))


def features_of(store: Store, workers: Workers, *, normalised: bool) -> DiskArray:
    """The features of a store, or those divided by row sums."""
    if not normalised:
        return store.arrays["features"]
    return _derived(store, "features-l1", store.num_features).compute(store, divided_block, workers)


def hop(store: Store, matrix: Matrix, factor: DiskArray, name: str, workers: Workers) -> DiskArray:
    """One product, as an array of that name."""
    width = factor.described.shape[1]
    return _derived(store, name, width).compute(store, partial(product_block, matrix, factor), workers)


def smoothed(store: Store, hops: int, workers: Workers, *, normalised: bool = False) -> DiskArray:
    """Features after `hops` propagations; every hop is kept, so that the next is one product away."""
    current = features_of(store, workers, normalised=normalised)
    kind = "l1" if normalised else "plain"
    for number in range(1, hops + 1):
        current = hop(store, "smoothing", current, f"{kind}-hop-{number}", workers)
    return current


def _derived(store: Store, name: str, width: int) -> Derived:
    return Derived(store.folder / "derived", name, name, store.features.dtype.str, width)


def matrix_rows(store: Store, matrix: Matrix, start: int, stop: int) -> sparse.csr_array:
    """Some rows of S or P."""
    if matrix == "transitions":
        return transition_rows(store, start, stop)
    return normalised_rows(store, store.scales, start, stop)


def times(rows: sparse.csr_array, factor: DiskArray) -> Tensor:
    """The product of some rows with an array on disk, of which only the rows that count are read."""
    matrix = SparseMatrix.of(rows, _CPU)
    dense = torch.from_numpy(factor.writable)
    if dense.dtype == torch.float32:
        return matrix @ dense
    # Float16 is for keeping; sums are float32.
    matrix, used = matrix.restrict()
    return matrix @ dense[used].float()
