"""Sums over all pairs of nodes, one tile of their products at a time."""

from collections.abc import Iterator
from itertools import combinations_with_replacement
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad, softplus

# Side of a square tile: it stays in a processor's cache, or keeps an accelerator busy.
TILE = {"cpu": 1024, "cuda": 4096}
# Matrix products on CUDA are several times slower where a row of theirs is no multiple of a few numbers long.
MULTIPLE = 64


def upper_tiles(num_rows: int, side: int) -> Iterator[tuple[slice, slice]]:
    """Rows and columns of square tiles on and above the diagonal: of a symmetric matrix they tell all."""
    spans = [slice(start, start + side) for start in range(0, num_rows, side)]
    return combinations_with_replacement(spans, 2)


def extended(vectors: Tensor) -> Tensor:
    """On CUDA with rows of zeros below, up to a multiple that matrix products are quick with."""
    return pad(vectors, (0, 0, 0, -len(vectors) % MULTIPLE)) if vectors.is_cuda else vectors


def summed_softplus(vectors: Tensor, side: int | None = None) -> Tensor:
    """The sum of softplus(z_i . z_j) over all ordered pairs of rows, a row with itself included.

    Args:
        vectors: One row a node.
        side: Rows and columns of a tile; by the device when None.
    """
    side = side or TILE.get(vectors.device.type, TILE["cuda"])
    rows = extended(vectors)
    total: Tensor = _SummedSoftplus.apply(rows, side)  # type: ignore[no-untyped-call]
    # Rows of zeros add softplus(0) a pair.
    return total - (len(rows) ** 2 - len(vectors) ** 2) * softplus(total.new_zeros(()))


class _SummedSoftplus(torch.autograd.Function):
    """The gradient is found in the same pass over the tiles: keeping products would take N x N.

    Products are symmetric: a tile beside the diagonal stands for the one across it, too.
    """

    @staticmethod
    def forward(ctx: Any, vectors: Tensor, side: int) -> Tensor:
        total, gradients = vectors.new_zeros(()), torch.zeros_like(vectors)
        for rows, columns in upper_tiles(len(vectors), side):
            products = vectors[rows] @ vectors[columns].T
            total += (1 if rows == columns else 2) * softplus(products).sum()
            products.sigmoid_()
            gradients[rows].addmm_(products, vectors[columns], alpha=2)
            if rows != columns:
                gradients[columns].addmm_(products.T, vectors[rows], alpha=2)
        ctx.save_for_backward(gradients)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (gradients,) = ctx.saved_tensors
        return gradient * gradients, None
