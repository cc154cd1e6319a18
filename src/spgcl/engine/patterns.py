"""The pattern of a sparse matrix: where it has entries, and all that does not depend on their values."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from scipy import sparse
from torch import Tensor

from spgcl.engine.kernels.sparse import Pieces, cut_rows

# A transpose reads the rows of the other factor in any order. This many rows stay in the cache of a CPU core;
# if a column has fewer entries among them, adding up the parts costs more than the cache saves.
ROWS_PER_PART = 8192
LEAST_ENTRIES = 16


@dataclass(frozen=True, eq=False)
class Pattern:
    """Positions of the entries of a matrix, as compressed rows.

    Attributes:
        rows: Row pointers, shape (num_rows + 1,).
        columns: Column of every entry.
        num_columns: Width of the matrix.
        lasting: Whether it is used for many products, so that work on it pays.
    """

    rows: Tensor
    columns: Tensor
    num_columns: int
    lasting: bool = False

    @property
    def num_rows(self) -> int:
        """Height of the matrix."""
        return len(self.rows) - 1

    @cached_property
    def longest(self) -> int:
        """Most entries in a row."""
        return int(self.rows.diff().max()) if self.num_rows else 0

    @cached_property
    def pieces(self) -> Pieces:
        """The rows cut into pieces of few entries, for the kernels on CUDA."""
        return cut_rows(self.rows)

    @cached_property
    def row_of_entry(self) -> Tensor:
        """Row of every entry, the other half of a coordinate list."""
        numbers = torch.arange(self.num_rows, dtype=self.columns.dtype, device=self.columns.device)
        return numbers.repeat_interleave(self.rows.diff(), output_size=len(self.columns))

    @cached_property
    def loops(self) -> Tensor:
        """Which entries are on the diagonal."""
        return self.row_of_entry == self.columns

    @cached_property
    def above(self) -> Tensor:
        """Which entries are above the diagonal."""
        return self.row_of_entry < self.columns

    @cached_property
    def indices(self) -> tuple[Tensor, Tensor]:
        """Indices of all rows and of all columns, for the kernels on CUDA."""
        device, sizes = self.columns.device, (self.num_rows, self.num_columns)
        rows, columns = (torch.arange(size, dtype=torch.int32, device=device) for size in sizes)
        return rows, columns

    @cached_property
    def transposed(self) -> tuple["Pattern", Tensor]:
        """The pattern of the transpose, and for each of its entries the index that it has here."""
        if self.columns.device.type == "cpu":
            return self._by_columns(self._numbered)
        columns, order = torch.sort(self.columns, stable=True)
        bounds = torch.arange(self.num_columns + 1, dtype=columns.dtype, device=columns.device)
        pointers = torch.searchsorted(columns, bounds).to(self.rows.dtype)
        pattern = Pattern(pointers, self.row_of_entry[order], self.num_rows, self.lasting)
        return pattern, order.to(self.columns.dtype)

    @cached_property
    def transposed_parts(self) -> list[tuple["Pattern", Tensor]]:
        """The same for `ROWS_PER_PART` rows at a time, or for all rows if parts would be thin; on CPU."""
        starts = range(0, self.num_rows, ROWS_PER_PART)
        if len(starts) < 2 or len(self.columns) < LEAST_ENTRIES * len(starts) * self.num_columns:
            return [self.transposed]
        numbered = self._numbered
        return [self._by_columns(numbered[start : start + ROWS_PER_PART]) for start in starts]

    def _by_columns(self, numbered: sparse.csr_array) -> tuple["Pattern", Tensor]:
        # Counting the entries of every column takes a third of the time of sorting them.
        pointers, rows, order = tensors_of(numbered.tocsc())
        return Pattern(pointers, rows, numbered.shape[0], self.lasting), order

    @property
    def _numbered(self) -> sparse.csr_array:
        """The matrix on CPU, with the index of every entry as its value."""
        return self.as_scipy(torch.arange(len(self.columns), dtype=self.columns.dtype))

    def as_scipy(self, values: Tensor) -> sparse.csr_array:
        """The same memory as a SciPy matrix, on CPU."""
        parts = tuple(part.numpy() for part in (values, self.columns, self.rows))
        return sparse.csr_array(parts, shape=(self.num_rows, self.num_columns))


def tensors_of(matrix: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Pointers, indices and values of a compressed SciPy matrix, not copied."""
    return torch.from_numpy(matrix.indptr), torch.from_numpy(matrix.indices), torch.from_numpy(matrix.data)
