"""Sums over all pairs of nodes, one tile of their products at a time."""

import math
from collections.abc import Callable, Iterator
from itertools import combinations_with_replacement
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad, softplus

from spgcl.engine.autograd import apply
from spgcl.engine.device import by_device
from spgcl.engine.kernels import tiles

# Side of a square tile: small enough for a processor's cache, large enough to keep an accelerator busy.
TILE = {"cpu": 1024, "cuda": 4096}
# Matrix products on CUDA are several times slower if the length of their rows is not such a multiple.
MULTIPLE = 64
# Side of a tile in float16, on CUDA: 512 MiB.
HALVED_TILE = 16384
# Largest number in float16, with room for rounding.
FLOAT16_RANGE = 60000
# Per pair: half of the products, which are symmetric, and two more products for their gradient.
SOFTPLUS_PRODUCTS = 1.5

Tile = tuple[slice, slice, Tensor]


def upper_tiles(num_rows: int, side: int) -> Iterator[tuple[slice, slice]]:
    """Rows and columns of square tiles on and above the diagonal, for a symmetric matrix."""
    spans = [slice(start, start + side) for start in range(0, num_rows, side)]
    return combinations_with_replacement(spans, 2)


def extended(vectors: Tensor) -> Tensor:
    """The vectors, on CUDA with rows of zeros up to a multiple for which matrix products are fast."""
    return pad(vectors, (0, 0, 0, -len(vectors) % MULTIPLE)) if vectors.is_cuda else vectors


def summed_softplus(vectors: Tensor, side: int | None = None) -> Tensor:
    """The sum of softplus(z_i . z_j) over all ordered pairs of rows, a row with itself included.

    Args:
        vectors: One row per node.
        side: Rows and columns of a tile; chosen by the device if None.
    """
    return apply(_SummedSoftplus, vectors, side)


class _SummedSoftplus(torch.autograd.Function):
    """The gradient is computed in the same pass over the tiles: keeping all products would take N x N.

    Products are symmetric: a tile above the diagonal counts for its mirror image too.
    """

    @staticmethod
    def forward(ctx: Any, vectors: Tensor, side: int | None) -> Tensor:
        summed = _softplus_in_float16 if tiles.serve(vectors) else _softplus_in_float32
        total, gradients = summed(vectors, side)
        ctx.save_for_backward(gradients)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (gradients,) = ctx.saved_tensors
        return gradient * gradients, None


def _softplus_in_float32(vectors: Tensor, side: int | None) -> tuple[Tensor, Tensor]:
    side = side or by_device(TILE, vectors.device)
    numbers = extended(vectors)
    total, gradients = vectors.new_zeros(()), torch.zeros_like(numbers)
    for rows, columns in upper_tiles(len(numbers), side):
        products = numbers[rows] @ numbers[columns].T
        total += (1 if rows == columns else 2) * softplus(products).sum()
        products.sigmoid_()
        gradients[rows].addmm_(products, numbers[columns], alpha=2)
        if rows != columns:
            gradients[columns].addmm_(products.T, numbers[rows], alpha=2)
    # Every pair with a row of zeros adds softplus(0).
    added = len(numbers) ** 2 - len(vectors) ** 2
    return total - added * math.log(2), gradients[: len(vectors)]


def _softplus_in_float16(vectors: Tensor, side: int | None) -> tuple[Tensor, Tensor]:
    # Scaled so that no product overflows, and as few as possible underflow.
    top = vectors.abs().amax().clamp(min=1e-30)
    scale = math.sqrt(FLOAT16_RANGE / vectors.shape[1]) / top
    rows_in_float16, unit = HalvedRows(vectors * scale, side or HALVED_TILE), 1 / scale.square()
    total = vectors.new_zeros(())

    def to_weights(rows: slice, columns: slice, products: Tensor) -> None:
        width = len(rows_in_float16.rows[columns])
        total.add_(tiles.logistic_(products, width, unit), alpha=1 if rows == columns else 2)

    gradients = rows_in_float16.weighted_sums(to_weights)
    return total, gradients * (2 / tiles.LOGISTIC_SCALE / scale)


class HalvedRows:
    """Rows in float16, on CUDA, and tiles of their products.

    Args:
        vectors: One row per node.
        side: Rows and columns of a tile.
    """

    def __init__(self, vectors: Tensor, side: int) -> None:
        # The rows of a tile start at a multiple.
        self.side = side + -side % tiles.MULTIPLE
        self._padded = extended(vectors).half()
        self.rows = self._padded[: len(vectors)]

    def tiles(self) -> Iterator[Tile]:
        """Products on and above the diagonal; each tile overwrites the one before.

        Rows of zeros, if any were added, are columns of the last tiles, not rows.
        """
        height, width = len(self.rows), len(self._padded)
        space = self.rows.new_empty(min(self.side, height) * min(self.side, width))
        for rows, columns in upper_tiles(height, self.side):
            one, other = self.rows[rows], self._padded[columns]
            tile = space[: len(one) * len(other)].view(len(one), len(other))
            yield rows, columns, torch.mm(one, other.T, out=tile)

    def weighted_sums(self, to_weights: Callable[[slice, slice, Tensor], None]) -> Tensor:
        """For every row the sum of all rows, each times the weight of the pair, in float32.

        Args:
            to_weights: Turns a tile of products into weights, in place; those of added columns have to be 0.
        """
        padded = torch.zeros(self._padded.shape, device=self.rows.device)
        sums = padded[: len(self.rows)]
        for rows, columns, weights in self.tiles():
            to_weights(rows, columns, weights)
            sums[rows] += torch.mm(weights, self._padded[columns], out_dtype=torch.float32)
            if rows != columns:
                padded[columns] += torch.mm(weights.T, self.rows[rows], out_dtype=torch.float32)
        return sums
