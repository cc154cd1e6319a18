"""A graph on a device: sparse matrices with row selection and gradients, and what encoders read."""

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor, nn

from spgcl import kernels
from spgcl.graph import Features, Graph
from spgcl.propagate import normalised_adjacency

# Above this share of non-zeros a dense product is the faster one: measured on CPU, set lower on accelerators.
DENSE_FROM = {"cpu": 0.1, "cuda": 0.02}
# A transpose reads the rows of the other factor in any order. So many rows at a time stay in the cache of a
# CPU core; where a column has fewer entries among them, adding the parts up costs more than that gains.
ROWS_A_PART = 8192
LEAST_ENTRIES = 16


@dataclass(frozen=True, eq=False)
class SparseMatrix:
    """Compressed sparse rows as tensors.

    Attributes:
        rows: Row pointers, shape (num_rows + 1,).
        columns: Column of every entry.
        values: Value of every entry.
        num_columns: Width of the matrix.
        symmetric: Whether the matrix equals its transpose, which then costs nothing.
        lasting: Whether it serves many products, so that work on its structure pays.
    """

    rows: Tensor
    columns: Tensor
    values: Tensor
    num_columns: int
    symmetric: bool = False
    lasting: bool = False

    @classmethod
    def of(cls, matrix: sparse.csr_array, device: torch.device, *, symmetric: bool = False) -> "SparseMatrix":
        """Copy a SciPy matrix to a device."""
        index = np.int32 if max(matrix.nnz, *matrix.shape) < 2**31 else np.int64
        return cls(
            rows=torch.as_tensor(np.array(matrix.indptr, dtype=index), device=device),
            columns=torch.as_tensor(np.array(matrix.indices, dtype=index), device=device),
            values=torch.as_tensor(np.array(matrix.data), device=device),
            num_columns=int(matrix.shape[1]),
            symmetric=symmetric,
            lasting=True,
        )

    @property
    def num_rows(self) -> int:
        """Height of the matrix."""
        return len(self.rows) - 1

    @property
    def counts(self) -> Tensor:
        """Entries in every row."""
        return self.rows.diff()

    @cached_property
    def longest(self) -> int:
        """Most entries in a row."""
        return int(self.counts.max()) if self.num_rows else 0

    @cached_property
    def pieces(self) -> tuple[Tensor, Tensor, int]:
        """The rows cut into pieces of few entries, for the kernels on CUDA."""
        return kernels.cut(self.rows)

    @cached_property
    def row_of_entry(self) -> Tensor:
        """Row of every entry, the other half of a coordinate list."""
        numbers = torch.arange(self.num_rows, dtype=self.columns.dtype, device=self.columns.device)
        return numbers.repeat_interleave(self.counts, output_size=len(self.columns))

    @cached_property
    def transposed(self) -> "SparseMatrix":
        """The transpose, entries of a row in order of the original row."""
        if self.symmetric:
            return self
        if self.columns.device.type == "cpu":
            # Counting the entries of every column takes a third of the time of sorting them.
            parts = _tensors_of(self._as_scipy.tocsc())
            return SparseMatrix(*parts, num_columns=self.num_rows, lasting=self.lasting)
        columns, order = torch.sort(self.columns, stable=True)
        bounds = torch.arange(self.num_columns + 1, dtype=columns.dtype, device=columns.device)
        pointers = torch.searchsorted(columns, bounds).to(self.rows.dtype)
        rows, values = self.row_of_entry[order], self.values[order]
        return SparseMatrix(pointers, rows, values, self.num_rows, lasting=self.lasting)

    @cached_property
    def _transposed_parts(self) -> list["SparseMatrix"]:
        """Transposes of the rows, `ROWS_A_PART` at a time: their products add up to that of the transpose."""
        starts = range(0, self.num_rows, ROWS_A_PART)
        if self.symmetric or len(self.columns) < LEAST_ENTRIES * len(starts) * self.num_columns:
            return [self.transposed]
        parts = (self._as_scipy[start : start + ROWS_A_PART] for start in starts)
        return [SparseMatrix(*_tensors_of(part.tocsc()), num_columns=part.shape[0]) for part in parts]

    def select(self, chosen: Tensor) -> "SparseMatrix":
        """The chosen rows, in the order given; repeats are allowed."""
        if self.columns.device.type == "cpu":
            return SparseMatrix(*_tensors_of(self._as_scipy[chosen.numpy()]), num_columns=self.num_columns)
        starts = self.rows[chosen]
        counts = self.rows[chosen + 1] - starts
        pointers = torch.zeros(len(chosen) + 1, dtype=self.rows.dtype, device=self.rows.device)
        torch.cumsum(counts, 0, out=pointers[1:])
        total = int(pointers[-1])
        offsets = (starts - pointers[:-1]).repeat_interleave(counts, output_size=total)
        entries = offsets + torch.arange(total, device=offsets.device)
        return SparseMatrix(pointers, self.columns[entries], self.values[entries], self.num_columns)

    def restrict(self) -> tuple["SparseMatrix", Tensor]:
        """The same matrix over the columns that occur only, and those columns in ascending order."""
        used, places = distinct(self.columns, self.num_columns)
        return SparseMatrix(self.rows, places.to(self.columns.dtype), self.values, len(used)), used

    def dense(self) -> Tensor:
        """The matrix with its zeros."""
        full = torch.zeros(
            self.num_rows, self.num_columns, dtype=self.values.dtype, device=self.values.device
        )
        full[self.row_of_entry.long(), self.columns.long()] = self.values
        return full

    def __matmul__(self, dense: Tensor) -> Tensor:
        product: Tensor = _Product.apply(self, dense)  # type: ignore[no-untyped-call]
        return product

    def _times(self, dense: Tensor) -> Tensor:
        values = self.values.to(dense.dtype)
        if dense.device.type == "cuda":
            # The library's product is as fast, but adds long rows up in an order that differs each time.
            fitting = dense.dtype == torch.float32 and self.columns.dtype == torch.int32
            if self.lasting and fitting and kernels.available():
                return kernels.all_rows(
                    self.pieces, self.columns, values, dense, self._row_numbers, self._column_numbers
                )
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
        if dense.device.type != "cpu":
            return self.transposed._times(dense)
        first, *others = self._transposed_parts
        total, start = first._times(dense[: first.num_columns]), first.num_columns
        for part in others:
            total += part._times(dense[start : start + part.num_columns])
            start += part.num_columns
        return total

    @cached_property
    def _as_scipy(self) -> sparse.csr_array:
        """The same memory as a SciPy matrix, on CPU."""
        parts = tuple(part.numpy() for part in (self.values, self.columns, self.rows))
        return sparse.csr_array(parts, shape=(self.num_rows, self.num_columns))

    @cached_property
    def _row_numbers(self) -> Tensor:
        return torch.arange(self.num_rows, dtype=torch.int32, device=self.columns.device)

    @cached_property
    def _column_numbers(self) -> Tensor:
        return torch.arange(self.num_columns, dtype=torch.int32, device=self.columns.device)

    def _compressed(self, values: Tensor) -> Tensor:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sparse CSR tensor support")
            warnings.filterwarnings("ignore", message="Sparse invariant checks")
            return torch.sparse_csr_tensor(
                self.rows, self.columns, values, size=(self.num_rows, self.num_columns)
            )


def _tensors_of(matrix: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Pointers, indices and values of a compressed SciPy matrix, not copied."""
    return torch.from_numpy(matrix.indptr), torch.from_numpy(matrix.indices), torch.from_numpy(matrix.data)


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
    """What encoders and pair rules read of a graph.

    Attributes:
        features: One row a node, dense or sparse.
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
        return self.adjacency.num_rows

    @property
    def weighted(self) -> bool:
        """Whether edges have weights; some encoders cannot use them."""
        return self.weights is not None

    @property
    def device(self) -> torch.device:
        """Where the tensors are."""
        return self.adjacency.values.device

    @cached_property
    def smoothed(self) -> Tensor:
        """One propagation of dense features, computed once: the first layer of a GCN needs no more."""
        if isinstance(self.features, SparseMatrix):
            raise TypeError("sparse features are multiplied by the weights first, then propagated")
        return self.adjacency @ self.features

    @cached_property
    def padded_smoothed(self) -> Tensor:
        """The same with columns of zeros up to a multiple of eight, at which products are twice as fast."""
        return nn.functional.pad(self.smoothed, (0, -self.smoothed.shape[1] % 8))


def divided_by_row_sums(features: Features) -> Features:
    """Rows divided by the sum of their absolute values; rows of zeros stay zero."""
    sums = np.asarray(abs(features).sum(axis=1), dtype=np.float32).reshape(-1)
    scale = np.divide(1, sums, out=np.zeros_like(sums), where=sums > 0)
    if sparse.issparse(features):
        return sparse.csr_array(sparse.diags_array(scale) @ features)
    return features * scale[:, None]


def _on_device(features: Any, device: torch.device) -> Tensor | SparseMatrix:
    dense_from = DENSE_FROM.get(device.type, DENSE_FROM["cuda"])
    if sparse.issparse(features):
        density = features.nnz / max(1, features.shape[0] * features.shape[1])
        if density < dense_from:
            return SparseMatrix.of(features, device)
        features = features.toarray()
    elif np.count_nonzero(features) < dense_from * features.size:
        return SparseMatrix.of(sparse.csr_array(features), device)
    return torch.as_tensor(np.array(features), device=device)


def distinct(nodes: Tensor, num_nodes: int) -> tuple[Tensor, Tensor]:
    """Sorted distinct values of node numbers, and the place of every given one among them."""
    if len(nodes) < num_nodes // 8:
        values, places = torch.unique(nodes, return_inverse=True)
        return values.long(), places
    # With many nodes asked for, a mask over all of them beats a sort.
    present = torch.zeros(num_nodes, dtype=torch.bool, device=nodes.device)
    present[nodes.long()] = True
    return present.nonzero().reshape(-1), (present.cumsum(0) - 1)[nodes.long()]
