"""A graph on a device: sparse matrices with row selection and gradients, and the input of encoders."""

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor, nn

from spgcl.engine.autograd import apply
from spgcl.engine.device import by_device
from spgcl.engine.kernels import step as kernels
from spgcl.engine.kernels.sparse import all_rows
from spgcl.engine.patterns import Pattern, tensors_of
from spgcl.graph import Graph
from spgcl.graph.checks import Features
from spgcl.graph.propagate import inverse, normalised_adjacency

# Above this fraction of non-zeros a dense product is faster: measured on CPU, set lower on accelerators.
DENSE_FROM = {"cpu": 0.1, "cuda": 0.02}


@dataclass(frozen=True, eq=False)
class SparseMatrix:
    """Compressed sparse rows as tensors.

    Attributes:
        pattern: Positions of the entries.
        values: Value of every entry.
        symmetric: Whether the matrix equals its transpose, which then costs nothing.
    """

    pattern: Pattern
    values: Tensor
    symmetric: bool = False

    @classmethod
    def of(cls, matrix: sparse.csr_array, device: torch.device, *, symmetric: bool = False) -> "SparseMatrix":
        """Copy a SciPy matrix to a device."""
        index = np.int32 if max(matrix.nnz, *matrix.shape) < 2**31 else np.int64
        rows, columns = (
            torch.as_tensor(np.array(part, dtype=index), device=device)
            for part in (matrix.indptr, matrix.indices)
        )
        values = torch.as_tensor(np.array(matrix.data), device=device)
        return cls(Pattern(rows, columns, int(matrix.shape[1]), lasting=True), values, symmetric)

    @classmethod
    def from_entries(
        cls, rows: Tensor, columns: Tensor, values: Tensor, shape: tuple[int, int]
    ) -> "SparseMatrix":
        """From entries in any order; repeated ones are kept, and products add them up."""
        owners, order = rows.sort(stable=True)
        bounds = torch.arange(shape[0] + 1, dtype=owners.dtype, device=owners.device)
        pattern = Pattern(torch.searchsorted(owners, bounds), columns[order], shape[1])
        return cls(pattern, values[order])

    @property
    def rows(self) -> Tensor:
        """Row pointers, shape (num_rows + 1,)."""
        return self.pattern.rows

    @property
    def columns(self) -> Tensor:
        """Column of every entry."""
        return self.pattern.columns

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns, as those of a dense matrix."""
        return self.pattern.num_rows, self.pattern.num_columns

    @property
    def counts(self) -> Tensor:
        """Entries in every row."""
        return self.rows.diff()

    @property
    def row_of_entry(self) -> Tensor:
        """Row of every entry, the other half of a coordinate list."""
        return self.pattern.row_of_entry

    def revalued(self, values: Tensor) -> "SparseMatrix":
        """The same pattern with other values, symmetric if this one is."""
        return replace(self, values=values)

    @property
    def transposed(self) -> "SparseMatrix":
        """The transpose, entries of a row in order of the original row."""
        # Caching `self` would create a reference cycle and delay freeing until the next garbage collection.
        return self if self.symmetric else self._computed_transpose

    @cached_property
    def _computed_transpose(self) -> "SparseMatrix":
        return self._reordered(*self.pattern.transposed)

    @cached_property
    def _transposed_parts(self) -> list["SparseMatrix"]:
        """Transposes of some rows at a time, whose products add up to that of the transpose."""
        return [self._reordered(*part) for part in self.pattern.transposed_parts]

    def _reordered(self, pattern: Pattern, order: Tensor) -> "SparseMatrix":
        return SparseMatrix(pattern, self.values.index_select(0, order))

    @property
    def capturable(self) -> bool:
        """Whether its products are kernels of fixed shapes on CUDA, which a CUDA graph can capture."""
        pattern = self.pattern
        fits = pattern.lasting and pattern.columns.dtype == torch.int32
        return fits and self.values.is_cuda and kernels.available()

    def counts_of(self, chosen: Tensor) -> Tensor:
        """Entries in each of the chosen rows."""
        return self.rows[chosen + 1] - self.rows[chosen]

    def entries(self, chosen: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Column and value of entries, given by their row and their position in it."""
        entries = self.rows[chosen].long() + positions
        return self.columns[entries], self.values[entries]

    def select(self, chosen: Tensor) -> "SparseMatrix":
        """The chosen rows, in the order given; repeats are allowed."""
        if self.columns.device.type == "cpu":
            pointers, columns, values = tensors_of(self._as_scipy[chosen.numpy()])
            return SparseMatrix(Pattern(pointers, columns, self.shape[1]), values)
        starts = self.rows[chosen]
        counts = self.rows[chosen + 1] - starts
        pointers = torch.zeros(len(chosen) + 1, dtype=self.rows.dtype, device=self.rows.device)
        torch.cumsum(counts, 0, out=pointers[1:])
        total = int(pointers[-1])
        offsets = (starts - pointers[:-1]).repeat_interleave(counts, output_size=total)
        entries = offsets + torch.arange(total, device=offsets.device)
        pattern = Pattern(pointers, self.columns[entries], self.shape[1])
        return SparseMatrix(pattern, self.values[entries])

    def restrict(self) -> tuple["SparseMatrix", Tensor]:
        """The same matrix without empty columns, and the columns that it keeps in ascending order."""
        used, indices = distinct(self.columns, self.shape[1])
        pattern = Pattern(self.rows, indices.to(self.columns.dtype), len(used))
        return SparseMatrix(pattern, self.values), used

    def dense(self) -> Tensor:
        """The matrix with its zeros."""
        full = torch.zeros(*self.shape, dtype=self.values.dtype, device=self.values.device)
        full[self.row_of_entry.long(), self.columns.long()] = self.values
        return full

    def __matmul__(self, dense: Tensor) -> Tensor:
        return apply(_Product, self, dense)

    def _times(self, dense: Tensor) -> Tensor:
        values = self.values.to(dense.dtype)
        if dense.device.type == "cuda":
            # cuSPARSE is as fast, but adds up long rows in a nondeterministic order.
            if self.capturable and dense.dtype == torch.float32:
                pattern = self.pattern
                return all_rows(pattern.pieces, self.columns, values, dense, *pattern.indices)
            return self._compressed(values) @ dense
        # A sum over weighted rows of a table is this product, and the fastest CPU kernel for it.
        return torch.nn.functional.embedding_bag(
            self.columns,
            dense.detach().contiguous(),
            self.rows.to(self.columns.dtype),
            mode="sum",
            per_sample_weights=values,
            include_last_offset=True,
        )

    def _transposed_times(self, dense: Tensor) -> Tensor:
        if self.symmetric or dense.device.type != "cpu":
            return self.transposed._times(dense)
        first, *others = self._transposed_parts
        total, start = first._times(dense[: first.shape[1]]), first.shape[1]
        for part in others:
            total += part._times(dense[start : start + part.shape[1]])
            start += part.shape[1]
        return total

    @cached_property
    def _as_scipy(self) -> sparse.csr_array:
        return self.pattern.as_scipy(self.values)

    def _compressed(self, values: Tensor) -> Tensor:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sparse CSR tensor support")
            warnings.filterwarnings("ignore", message="Sparse invariant checks")
            return torch.sparse_csr_tensor(self.rows, self.columns, values, size=self.shape)


class _Product(torch.autograd.Function):
    """Sparse times dense; the gradient reaches the dense factor only."""

    @staticmethod
    def forward(ctx: Any, matrix: SparseMatrix, dense: Tensor) -> Tensor:
        ctx.matrix = matrix
        return matrix._times(dense)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor]:
        return None, ctx.matrix._transposed_times(gradient)


@dataclass(frozen=True, eq=False)
class GraphTensors:
    """The tensors that encoders and pair rules read of a graph.

    Attributes:
        features: One row per node, dense or sparse.
        adjacency: Normalised adjacency with self loops, so that a hop always keeps the node itself.
        weights: Edge weight of every entry of `adjacency`, 1 on its diagonal; None for an unweighted graph.
    """

    features: Tensor | SparseMatrix
    adjacency: SparseMatrix
    weights: Tensor | None = None

    @classmethod
    def of(cls, graph: Graph, device: torch.device, *, normalise_features: bool = False) -> "GraphTensors":
        """Normalise the adjacency and, if asked, the feature rows, and move both to a device."""
        features = divided_by_row_sums(graph.features) if normalise_features else graph.features
        adjacency = SparseMatrix.of(normalised_adjacency(graph), device, symmetric=not graph.directed)
        weights = None
        if graph.weights is not None:
            looped = (graph.adjacency + sparse.eye_array(graph.num_nodes, dtype=np.float32)).tocsr()
            weights = torch.as_tensor(looped.data, device=device)
        return cls(_on_device(features, device), adjacency, weights)

    @property
    def num_nodes(self) -> int:
        """How many nodes."""
        return self.adjacency.shape[0]

    @property
    def weighted(self) -> bool:
        """Whether edges have weights; some encoders cannot use them."""
        return self.weights is not None

    @property
    def device(self) -> torch.device:
        """The device of its tensors."""
        return self.adjacency.values.device

    @property
    def capturable(self) -> bool:
        """Whether a CUDA graph can capture its products."""
        features = self.features
        return self.adjacency.capturable and (isinstance(features, Tensor) or features.capturable)

    @cached_property
    def smoothed(self) -> Tensor:
        """One propagation of dense features, computed once: the first layer of a GCN needs no more."""
        if isinstance(self.features, SparseMatrix):
            raise TypeError("sparse features are multiplied by the weights first, then propagated")
        return self.adjacency @ self.features

    @cached_property
    def padded_smoothed(self) -> Tensor:
        """The same with columns of zeros up to a multiple of eight, which makes products twice as fast."""
        return nn.functional.pad(self.smoothed, (0, -self.smoothed.shape[1] % 8))


def divided_by_row_sums(features: Features) -> Features:
    """Rows divided by the sum of their absolute values; rows of zeros stay zero."""
    sums = np.asarray(abs(features).sum(axis=1), dtype=np.float32).reshape(-1)
    scale = inverse(sums)
    if sparse.issparse(features):
        return sparse.csr_array(sparse.diags_array(scale) @ features)
    return features * scale[:, None]


def _on_device(features: Any, device: torch.device) -> Tensor | SparseMatrix:
    dense_from = by_device(DENSE_FROM, device)
    if sparse.issparse(features):
        density = features.nnz / max(1, features.shape[0] * features.shape[1])
        if density < dense_from:
            return SparseMatrix.of(features, device)
        features = features.toarray()
    elif np.count_nonzero(features) < dense_from * features.size:
        return SparseMatrix.of(sparse.csr_array(features), device)
    return torch.as_tensor(np.array(features), device=device)


def distinct(nodes: Tensor, num_nodes: int) -> tuple[Tensor, Tensor]:
    """The distinct nodes of a list, ascending, and the index of every node of the list among them."""
    if len(nodes) < num_nodes // 8:
        values, indices = torch.unique(nodes, return_inverse=True)
        return values.long(), indices
    # For many nodes a mask over all of them is faster than sorting.
    present = torch.zeros(num_nodes, dtype=torch.bool, device=nodes.device)
    present[nodes.long()] = True
    return present.nonzero().reshape(-1), (present.cumsum(0) - 1)[nodes.long()]
