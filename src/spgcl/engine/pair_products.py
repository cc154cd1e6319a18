"""Inner products of some pairs of rows, or of all, with gradients that cost little memory."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from spgcl.engine.autograd import apply
from spgcl.engine.device import by_device
from spgcl.engine.tensors import SparseMatrix

# Numbers in a block of rows: few enough for a processor's cache, or for an accelerator's memory.
_CACHED_NUMBERS = {"cpu": 2**20, "cuda": 2**24}


def inner_products(rows: Tensor) -> Tensor:
    """Inner products of all pairs of rows; the gradient takes one matrix product instead of two."""
    return apply(_InnerProducts, rows)


class _InnerProducts(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        ctx.save_for_backward(rows)
        return rows @ rows.T

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        rows: Tensor = ctx.saved_tensors[0]
        return (gradient + gradient.T) @ rows


def pair_products(left: Tensor, right: Tensor, first: Tensor, second: Tensor | None = None) -> Tensor:
    """Inner products of rows of `left` with rows of `right`, one per pair; the backward pass gathers again.

    Args:
        left: One row per node.
        right: Likewise.
        first: Row of `left` of every pair.
        second: Row of `right` of every pair; the rows in their order if None.
    """
    return apply(_PairProducts, left, right, first, second)


class _PairProducts(torch.autograd.Function):
    """The memory kept for the backward pass does not grow with pairs times width."""

    @staticmethod
    def forward(ctx: Any, left: Tensor, right: Tensor, first: Tensor, second: Tensor | None) -> Tensor:
        ctx.save_for_backward(left, right, first, second)
        return _products(left, right, first, _in_order(right) if second is None else second)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None]:
        left, right, first, second = ctx.saved_tensors
        of_left = _sums(left, first, _in_order(right) if second is None else second, gradient, right)
        if second is None:
            of_right = left.index_select(0, first).mul_(gradient[:, None])
        else:
            of_right = _sums(right, second, first, gradient, left)
        return of_left, of_right, None, None


def entry_products(vectors: Tensor, entries: SparseMatrix) -> Tensor:
    """Inner products of the rows i and j of vectors for the entries (i, j) of a matrix, in their order.

    The gradient is a product with the matrix. If the matrix is symmetric, the gradient of the inner products
    has to be symmetric too: the same for (i, j) as for (j, i).
    """
    return apply(_EntryProducts, vectors, entries)


class _EntryProducts(torch.autograd.Function):
    """No pairs have to be sorted by row: the matrix is."""

    @staticmethod
    def forward(ctx: Any, vectors: Tensor, entries: SparseMatrix) -> Tensor:
        ctx.save_for_backward(vectors)
        ctx.entries = entries
        return _products(vectors, vectors, entries.row_of_entry, entries.columns)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (vectors,) = ctx.saved_tensors
        # Kernels need contiguous values.
        weights = ctx.entries.revalued(gradient.contiguous())
        if weights.symmetric:
            return (weights @ vectors).mul_(2), None
        return (weights @ vectors).add_(weights.transposed @ vectors), None


def _in_order(vectors: Tensor) -> Tensor:
    return torch.arange(len(vectors), device=vectors.device)


def _products(left: Tensor, right: Tensor, first: Tensor, second: Tensor) -> Tensor:
    out = left.new_empty(len(first))
    # The same memory for all blocks: getting new pages from the system takes longer than using them.
    space = left.new_empty(2, min(len(first), _block_size(left)), left.shape[1])
    for one, two, part in _blocks(left, first, second, out):
        rows, others = space[:, : len(part)]
        torch.index_select(left, 0, one, out=rows)
        torch.index_select(right, 0, two, out=others)
        torch.sum(rows.mul_(others), 1, out=part)
    return out


def _blocks(vectors: Tensor, *parts: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Parts of tensors with one entry per pair: as many pairs at a time as rows fit into a cache."""
    size = _block_size(vectors)
    return zip(*(torch.split(part, size) for part in parts), strict=True)


def _block_size(vectors: Tensor) -> int:
    return max(1, by_device(_CACHED_NUMBERS, vectors.device) // vectors.shape[1])


def _sums(like: Tensor, rows: Tensor, columns: Tensor, weights: Tensor, vectors: Tensor) -> Tensor:
    """Adds for every pair a weighted row of `vectors` to a row of zeros shaped as `like`.

    In a deterministic order, unlike the backward pass of indexing.
    """
    if like.device.type != "cpu":
        sums = torch.zeros_like(like)
        for row, column, weight in _blocks(like, rows, columns, weights):
            sums.index_add_(0, row, vectors.index_select(0, column).mul_(weight[:, None]))
        return sums
    return SparseMatrix.from_entries(rows, columns, weights, (len(like), len(vectors))) @ vectors
