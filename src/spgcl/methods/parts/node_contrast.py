"""The objective of GRACE, GCA and GraphCL: the same node of two views attracts, all others repel."""

import math
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import normalize

from spgcl.engine.all_pairs import HALVED_TILE, HalvedRows, Tile, upper_tiles
from spgcl.engine.autograd import apply
from spgcl.engine.device import by_device
from spgcl.engine.kernels import tiles
from spgcl.errors import InputError

# Side of the square tiles in which similarities are computed: fits a processor's cache, and keeps an
# accelerator busy. A few temporaries of a tile's size exist at once.
TILE = {"cpu": 1024, "cuda": 8192}
# Up to this size of the whole matrix, tiles are kept between the sums and the gradient.
KEPT_BYTES = 256 * 2**20
# Exponentials of similarities are summed without shifting, so that the temperature limits their range.
LEAST_TEMPERATURE = {torch.float32: 1 / 40, torch.float64: 1 / 350}

# Similarities in float16 have eleven bits. At lower temperatures they exceed ten, and the error of
# exponentials would be up to 0.5 %.
LEAST_HALVED_TEMPERATURE = 0.1
# Fractions of a row's sum, up to 1 and mostly far below, are moved to the middle of the range of float16.
SHARES_SCALE = 2.0**14
# Per pair of nodes: half of the similarities of both views with both, once for the sums and once for the
# gradient, which takes two more products.
CONTRAST_PRODUCTS = 8


def node_contrast(first: Tensor, second: Tensor, *, temperature: float, tile: int | None = None) -> Tensor:
    """The symmetric objective of GRACE, Eq. 1 and 2 of its paper, as a loss to minimise.

    A node's negatives are all other nodes of its own view and of the other one. Similarities exist one tile
    at a time, forward and backward, so that memory is linear in the number of nodes.

    Args:
        first: Projections in one view (u), shape (nodes, width).
        second: Projections of the same nodes in the other view (v).
        temperature: What cosine similarities are divided by (tau).
        tile: Rows and columns of a tile; by default what suits the device.
    """
    vectors = torch.cat([normalize(first, dim=1), normalize(second, dim=1)])
    if temperature < LEAST_TEMPERATURE[torch.float64]:
        raise InputError(f"temperature is {temperature:g}; it must be {1 / 350:.4f} or more")
    if temperature < LEAST_TEMPERATURE.get(vectors.dtype, 0):
        vectors = vectors.double()
    side = tile or by_device(TILE, vectors.device)
    return apply(_NodeContrast, vectors, temperature, side).to(first.dtype)


def projection_head(width: int, inner_width: int, activation: nn.Module) -> nn.Sequential:
    """The two-layer perceptron g between an encoder and the objective."""
    return nn.Sequential(nn.Linear(width, inner_width), activation, nn.Linear(inner_width, width))


class _NodeContrast(torch.autograd.Function):
    """Mean over the rows of [U; V] of -log softmax at the partner, without the row's own entry.

    This way both directions of the objective and both kinds of negatives are one symmetric matrix of
    similarities. Only tiles on and above its diagonal are computed: for the sums of all rows and, unless
    kept, again for the gradient, which the forward pass computes and the backward pass scales.
    """

    @staticmethod
    def forward(ctx: Any, vectors: Tensor, temperature: float, side: int) -> Tensor:
        scale = math.sqrt(temperature)
        scaled = vectors / scale
        partners = scaled.roll(len(vectors) // 2, 0)
        wanted = ctx.needs_input_grad[0]
        if temperature >= LEAST_HALVED_TEMPERATURE and tiles.serve(scaled):
            halves = HalvedRows(scaled, HALVED_TILE)
            sums = _halved_row_sums(halves)
            repulsion = _halved_repulsion(halves, sums.reciprocal()) if wanted else None
        else:
            keep = wanted and scaled.element_size() * len(scaled) ** 2 <= KEPT_BYTES
            kept = list(_tiles(scaled, side)) if keep else None
            sums = _row_sums(scaled, kept or _tiles(scaled, side))
            again = kept or _tiles(scaled, side)
            repulsion = _repulsion(scaled, sums.reciprocal(), again) if wanted else None
        if repulsion is not None:
            ctx.save_for_backward(repulsion.sub_(partners, alpha=2).div_(scale * len(vectors)))
        return (sums.log() - (scaled * partners).sum(1)).mean()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (saved,) = ctx.saved_tensors
        return saved * gradient, None, None


def _row_sums(vectors: Tensor, tiles: Iterable[Tile]) -> Tensor:
    """Summed exponentials of every row without its own entry."""
    sums = vectors.new_zeros(len(vectors))
    for rows, columns, exponentials in tiles:
        sums[rows] += exponentials.sum(1)
        # A tile above the diagonal also counts as its mirror image.
        if rows != columns:
            sums[columns] += exponentials.sum(0)
    return sums


def _repulsion(vectors: Tensor, shares: Tensor, tiles: Iterable[Tile]) -> Tensor:
    """(P + P^T) times the vectors, with P the softmax of every row and `shares` one over its sum."""
    result = torch.zeros_like(vectors)
    for rows, columns, exponentials in tiles:
        both = exponentials.mul_(shares[rows, None] + shares[columns])
        result[rows].addmm_(both, vectors[columns])
        if rows != columns:
            result[columns].addmm_(both.T, vectors[rows])
    return result


def _tiles(vectors: Tensor, side: int) -> Iterator[Tile]:
    """Exponentials of similarities on and above the diagonal, 0 on it, with their rows and columns."""
    for rows, columns in upper_tiles(len(vectors), side):
        exponentials = (vectors[rows] @ vectors[columns].T).exp_()
        if rows == columns:
            exponentials.fill_diagonal_(0)
        yield rows, columns, exponentials


def _halved_row_sums(halves: HalvedRows) -> Tensor:
    """The same as `_row_sums`."""
    sums = torch.zeros(len(halves.rows), device=halves.rows.device)
    for rows, columns, similarities in halves.tiles():
        width = len(sums[columns])
        of_rows, of_columns = tiles.exponential_sums(similarities, width, diagonal=rows == columns)
        sums[rows] += of_rows
        if rows != columns:
            sums[columns] += of_columns
    return sums


def _halved_repulsion(halves: HalvedRows, shares: Tensor) -> Tensor:
    """The same as `_repulsion`."""
    shares = shares * SHARES_SCALE

    def settle(rows: slice, columns: slice, similarities: Tensor) -> None:
        tiles.exponential_shares_(similarities, shares[rows], shares[columns], diagonal=rows == columns)

    return halves.weighted_sums(settle).div_(SHARES_SCALE)
