"""Random draws, layers and the contrastive loss on CUDA, of fixed shapes."""

import math
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from spgcl.engine.autograd import apply
from spgcl.engine.kernels.step import LANES, NARROW, launch

# As in the source: rows of threads that add up the sums of all chunks.
ROWS_FINISHED = 32
# Blocks that keep an accelerator busy: columns are summed over as many chunks of rows as that takes.
BLOCKS = 2048

# Mean, inverse deviation, factor and offset of every column.
Normals = tuple[Tensor, Tensor, Tensor, Tensor]


class Keys:
    """Pairs of numbers that decide all that a kernel draws, one pair per kernel, drawn together."""

    MOST = 16

    def __init__(self, generator: torch.Generator) -> None:
        self._generator = generator
        self._taken = 0
        self._drawn: Tensor | None = None

    def take(self) -> Tensor:
        """The next pair."""
        if self._drawn is None or self._taken == self.MOST:
            shape, device = (self.MOST, 2), self._generator.device
            self._drawn = torch.randint(
                2**31, shape, dtype=torch.int32, generator=self._generator, device=device
            )
            self._taken = 0
        self._taken += 1
        return self._drawn[self._taken - 1]


def draw_distinct(total: Tensor, count: int, key: Tensor) -> Tensor:
    """Distinct numbers below `total`, drawn uniformly; if these are too few, the rest repeats the first."""
    out = torch.empty(count, dtype=torch.int64, device=key.device)
    launch("draw_distinct", (-(-count // 128), 1), (128, 1), total, key, out, count)
    return out


def activated(
    values: Tensor,
    mask: Tensor,
    size: Tensor,
    *,
    bias: Tensor,
    norm: nn.BatchNorm1d | None = None,
    activation: nn.Module,
    dropout: float = 0.0,
    keys: Keys,
) -> Tensor:
    """Bias, batch norm, activation and dropout of some rows; the others become zeros.

    Args:
        values: Shape (rows, width).
        mask: Which rows count, as bytes; batch norm takes its statistics from them.
        size: How many they are.
        bias: Added before batch norm.
        norm: Batch norm in training, if there is any.
        activation: A ReLU, or a PReLU with one slope.
        dropout: Fraction of entries set to zero.
        keys: Decide which.
    """
    device, width = values.device, len(bias)
    scale, shift, normals = _constant(width, 1.0, device), bias, None
    if norm is not None:
        normals = _batch_norm(values.detach(), mask, size, bias.detach(), norm)
        scale = scale if norm.weight is None else norm.weight
        shift = _constant(width, 0.0, device) if norm.bias is None else norm.bias
    slope = activation.weight if isinstance(activation, nn.PReLU) else _constant(1, 0.0, device)
    key = keys.take() if dropout else _constant(2, 0.0, device)
    return apply(_Activation, values, scale, shift, slope, mask, size, key, dropout, normals)


@cache
def _constant(width: int, value: float, device: torch.device) -> Tensor:
    """A vector of one number, made once."""
    return torch.full((width,), value, device=device)


def _chunks(height: int, width: int) -> tuple[int, int]:
    """Rows per chunk, and how many chunks there are."""
    rows = math.ceil(height / max(1, BLOCKS * NARROW // width))
    chunk = math.ceil(rows / LANES) * LANES
    return chunk, math.ceil(height / chunk)


def _batch_norm(values: Tensor, mask: Tensor, size: Tensor, bias: Tensor, norm: nn.BatchNorm1d) -> Normals:
    """Statistics of the rows of the mask; updates the running statistics of `norm`."""
    height, width = values.shape
    device, (chunk, chunks) = values.device, _chunks(height, width)
    means = torch.empty(chunks, width, device=device)
    deviations = torch.empty_like(means)
    sizes = torch.empty(chunks, device=device)
    tiles = -(-width // NARROW)
    parts = (means, deviations, sizes)
    launch("moments", (tiles, chunks), (32, LANES), values, mask, *parts, height, width, chunk)
    gamma = _constant(width, 1.0, device) if norm.weight is None else norm.weight
    beta = _constant(width, 0.0, device) if norm.bias is None else norm.bias
    assert norm.running_mean is not None and norm.running_var is not None and norm.momentum is not None
    normals = torch.empty(4, width, device=device)
    inputs = (size, gamma, beta, bias, norm.running_mean, norm.running_var)
    rates = (float(norm.momentum), float(norm.eps))
    block = (32, ROWS_FINISHED)
    launch("finish_moments", (tiles, 1), block, *parts, *inputs, *normals, chunks, width, *rates)
    if norm.num_batches_tracked is not None:
        norm.num_batches_tracked.add_(1)
    mean, inverse, factor, offset = normals
    return mean, inverse, factor, offset


class _Activation(torch.autograd.Function):
    """Dropout of PReLU of a scaled and shifted matrix.

    Without batch norm (`normals` None) `scale` is 1 and `shift` the bias. With it they are its gamma and
    beta, and the gradient goes through mean and deviation too.
    """

    @staticmethod
    def forward(
        ctx: Any,
        values: Tensor,
        scale: Tensor,
        shift: Tensor,
        slope: Tensor,
        mask: Tensor,
        size: Tensor,
        key: Tensor,
        rate: float,
        normals: Normals | None,
    ) -> Tensor:
        values = values.contiguous()
        height, width = values.shape
        zeros = _constant(width, 0.0, values.device)
        mean, inverse, factor, offset = normals or (zeros, zeros, scale, shift)
        out = torch.empty_like(values)
        dropout = (int(rate * 2**32), 1 / (1 - rate))
        layer = (values, factor, offset, slope, mask, key)
        launch("activate", (height, 1), (_threads(width // 4), 1), *layer, out, width, *dropout)
        ctx.save_for_backward(*layer, mean, inverse, size)
        ctx.dropout, ctx.normal = dropout, normals is not None
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        values, factor, offset, slope, mask, key, mean, inverse, size = ctx.saved_tensors
        gradient = gradient.contiguous()
        height, width = values.shape
        (chunk, chunks), tiles = _chunks(height, width), -(-width // NARROW)
        sums = torch.empty(3, chunks, width, device=values.device)
        out = torch.empty_like(values)
        shape = (height, width, chunk, chunks, int(ctx.normal))
        layer = (values, factor, offset)
        arguments = (mean, slope, mask, key, gradient, sums, out, *shape, *ctx.dropout)
        launch("activate_sums", (tiles, chunks), (32, LANES), *layer, *arguments)
        of_shift, of_scale, of_slope, constant, linear = results = torch.empty(5, width, device=values.device)
        arguments = (factor, mean, inverse, size, *results, chunks, width, int(ctx.normal))
        launch("finish_sums", (tiles, 1), (32, ROWS_FINISHED), sums, *arguments)
        if ctx.normal:
            arguments = (slope, mask, key, constant, linear, gradient, out, width, *ctx.dropout)
            launch("activate_gradient", (height, 1), (_threads(width // 4), 1), *layer, *arguments)
        return out, of_scale, of_shift, of_slope.sum().reshape(slope.shape), None, None, None, None, None


def _threads(width: int) -> int:
    return min(256, max(1, -(-width // 32)) * 32)


def unit_rows(values: Tensor) -> Tensor:
    """Rows divided by their length."""
    return apply(_UnitRows, values)


class _UnitRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        values = values.contiguous()
        height, width = values.shape
        out, norms = torch.empty_like(values), torch.empty(height, device=values.device)
        launch("unit_rows", (height, 1), (_threads(width), 1), values, out, norms, width)
        ctx.save_for_backward(out, norms)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        unit, norms = ctx.saved_tensors
        height, width = unit.shape
        out = torch.empty_like(unit)
        arguments = (unit, norms, gradient.contiguous(), out, width)
        launch("unit_rows_gradient", (height, 1), (_threads(width), 1), *arguments)
        return out


def contrast(
    similarities: Tensor,
    anchors: Tensor,
    pool: Tensor,
    size: Tensor,
    key: Tensor,
    *,
    anchors_are_pool: bool,
    positives: int,
    negatives: int,
    own_positive: bool,
    negative_weight: float,
) -> Tensor:
    """The contrastive loss of similarities, with the choice of positives and negatives.

    Args:
        similarities: Of anchors with entries of a pool.
        anchors: Node of every row.
        pool: Node of every column.
        size: How many entries of the pool count, those in front.
        key: Decides which are negatives.
        anchors_are_pool: Whether only as many anchors count.
        positives: Most similar entries that attract each anchor.
        negatives: Random entries that repel it.
        own_positive: Whether a node may be its own positive.
        negative_weight: Weight of the repelling term.
    """
    numbers = (positives, negatives, int(own_positive), int(anchors_are_pool), float(negative_weight))
    return apply(_Contrast, similarities, anchors, pool, size, key, numbers)


class _Contrast(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        similarities: Tensor,
        anchors: Tensor,
        pool: Tensor,
        size: Tensor,
        key: Tensor,
        numbers: tuple[int, int, int, int, float],
    ) -> Tensor:
        height, width = similarities.shape
        gradient = torch.empty_like(similarities)
        losses = torch.empty(height, device=similarities.device)
        inputs = (similarities.contiguous(), anchors, pool, size, key)
        launch(
            "contrast", (height, 1), (256, 1), *inputs, gradient, losses, width, *numbers, shared=8 * width
        )
        ctx.save_for_backward(gradient)
        return losses.sum()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        (of_similarities,) = ctx.saved_tensors
        return of_similarities * gradient, *[None] * 5
