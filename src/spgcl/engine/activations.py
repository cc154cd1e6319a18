"""Batch norm, activation and dropout in few passes over memory on CPU, by plain operations elsewhere."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm, leaky_relu, leaky_relu_

from spgcl.engine.autograd import apply

# Columns of a Gram matrix that are computed at once; entries below the diagonal are copied.
_GRAM_COLUMNS = 256
# Random bits per entry by which dropout decides; they keep a rate to within a hundred-thousandth.
_BITS = 16


def activate(
    values: Tensor, activation: nn.Module, rate: float = 0.0, generator: torch.Generator | None = None
) -> Tensor:
    """Activation, then dropout if there is a generator.

    Args:
        values: Input of any shape.
        activation: A ReLU, or a PReLU with one slope.
        rate: Fraction of entries set to zero; the others are scaled up.
        generator: Decides which.
    """
    factors = None
    if generator is not None and rate > 0:
        factors = dropout_factors(values.shape, rate, generator, values.dtype)
    if values.device.type != "cpu":
        active: Tensor = activation(values)
        return active if factors is None else active * factors
    slope = activation.weight if isinstance(activation, nn.PReLU) else values.new_zeros(1)
    return apply(_Activation, values, slope, factors)


def activate_in_place(values: Tensor, activation: nn.Module) -> Tensor:
    """The activation, in the memory of its input; without gradient."""
    if isinstance(activation, nn.PReLU):
        return leaky_relu_(values, float(activation.weight))
    return values.relu_()


class _Activation(torch.autograd.Function):
    """Dropout, then the activation: factors are never negative, so the order changes nothing."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, slope: Tensor, factors: Tensor | None) -> Tensor:
        values = values if factors is None else values * factors
        ctx.save_for_backward(values, slope, factors)
        return leaky_relu(values, float(slope))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor | None, None]:
        values, slope, factors = ctx.saved_tensors
        to_slope = None
        if ctx.needs_input_grad[1]:
            to_slope = torch.dot(gradient.reshape(-1), values.clamp(max=0).reshape(-1)).view_as(slope)
        back = torch.ops.aten.leaky_relu_backward(gradient, values, float(slope), False)
        return back if factors is None else back.mul_(factors), to_slope, None


def dropout_factors(shape: torch.Size, rate: float, generator: torch.Generator, dtype: torch.dtype) -> Tensor:
    """Zero with probability `rate`, else the factor that keeps the mean."""
    if generator.device.type != "cpu":
        drawn = torch.rand(shape, dtype=dtype, generator=generator, device=generator.device)
        return drawn.ge_(rate).div_(1 - rate)
    # A generator on CPU runs on one thread, so each 64-bit word decides for four entries.
    words = torch.empty(-(-shape.numel() * _BITS // 64), dtype=torch.int64)
    drawn = words.random_(-(2**63), None, generator=generator).view(torch.int16)[: shape.numel()]
    dropped = round(rate * 2**_BITS) - 2 ** (_BITS - 1)
    return drawn.to(dtype).ge_(dropped).div_(1 - rate).view(shape)


def normalise(
    values: Tensor,
    norm: nn.BatchNorm1d,
    columns: slice,
    rows: Tensor | None = None,
    bias: Tensor | None = None,
) -> Tensor:
    """Batch norm of some of its columns, for all rows or for those given.

    The statistics come from all rows. The caller counts the batches. In training a bias may be passed that
    was not added to the values: batch norm would cancel it, so only the running mean gets it.
    """
    assert norm.running_mean is not None and norm.running_var is not None
    mean, variance = norm.running_mean[columns], norm.running_var[columns]
    scale, shift = (norm.weight[columns], norm.bias[columns]) if norm.affine else (None, None)
    momentum = norm.momentum or 0.0
    # Torch saves the running mean for the backward pass, so it must not change in place.
    moved = mean if bias is None else mean.clone()
    if rows is not None and norm.training and values.device.type == "cpu" and len(values) > 1:
        result = apply(_NormalRows, values, scale, shift, rows, moved, variance, momentum, norm.eps)
    else:
        result = batch_norm(values, moved, variance, scale, shift, norm.training, momentum, norm.eps)
        result = result if rows is None else result.index_select(0, rows)
    if bias is not None:
        mean.copy_(torch.add(moved, bias.detach(), alpha=momentum))
    return result


def normalised_product(
    inputs: Tensor, weight: Tensor, bias: Tensor, norm: nn.BatchNorm1d, rows: Tensor
) -> Tensor:
    """Some rows of the batch norm, in training, of a product with weights; statistics come from all rows.

    The variance of a column of the product is a quadratic form in the covariance of the inputs, and the
    gradient of the statistics is linear in the inputs. So the product itself is computed for the given rows
    only, and two smaller products over all rows replace three. The inputs are centred in place: nothing else
    may read them.
    """
    return apply(_NormalProduct, inputs, weight, bias, norm.weight, norm.bias, rows, norm)


def folded(weight: Tensor, bias: Tensor, norm: nn.BatchNorm1d) -> tuple[Tensor, Tensor]:
    """Weights and bias of a layer that includes batch norm with its running statistics."""
    assert norm.running_mean is not None and norm.running_var is not None
    factor = (norm.running_var + norm.eps).rsqrt()
    if norm.affine:
        factor = factor * norm.weight
    shift = (bias - norm.running_mean) * factor
    return weight * factor, shift + norm.bias if norm.affine else shift


class _NormalRows(torch.autograd.Function):
    """Batch norm in training for a few distinct rows, with statistics of all."""

    @staticmethod
    def forward(
        ctx: Any,
        values: Tensor,
        scale: Tensor | None,
        shift: Tensor | None,
        rows: Tensor,
        running_mean: Tensor,
        running_variance: Tensor,
        momentum: float,
        epsilon: float,
    ) -> Tensor:
        mean, variance = torch.batch_norm_update_stats(values, running_mean, running_variance, momentum)
        inverse = (variance + epsilon).rsqrt_()
        normal = values.index_select(0, rows).sub_(mean).mul_(inverse)
        ctx.save_for_backward(values, scale, rows, mean, inverse, normal)
        return normal if scale is None or shift is None else torch.addcmul(shift, normal, scale)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        values, scale, rows, mean, inverse, normal = ctx.saved_tensors
        to_shift, to_scale = gradient.sum(0), (gradient * normal).sum(0)
        factor = inverse if scale is None else inverse * scale
        # Through mean and variance every row gets a gradient that is linear in its own value.
        slope = factor * inverse * to_scale / -len(values)
        offset = factor * to_shift / -len(values) - slope * mean
        back = torch.addcmul(offset, values, slope).index_add_(0, rows, gradient * factor)
        affine = (None, None) if scale is None else (to_scale, to_shift)
        return back, *affine, None, None, None, None, None


class _NormalProduct(torch.autograd.Function):
    """Batch norm of a product for a few distinct rows, by the covariance of the inputs."""

    @staticmethod
    def forward(
        ctx: Any,
        inputs: Tensor,
        weight: Tensor,
        bias: Tensor,
        scale: Tensor | None,
        shift: Tensor | None,
        rows: Tensor,
        norm: nn.BatchNorm1d,
    ) -> Tensor:
        number = len(inputs)
        mean = inputs.mean(0)
        centred = inputs.sub_(mean)
        spread = gram(centred).div_(number) @ weight
        variance = (weight * spread).sum(0).clamp_(min=0)
        follow(norm, mean @ weight + bias, variance, number)
        inverse = (variance + norm.eps).rsqrt_()
        chosen = centred.index_select(0, rows)
        normal = (chosen @ weight).mul_(inverse)
        ctx.save_for_backward(centred, chosen, weight, spread, inverse, normal, scale, rows)
        return normal if scale is None or shift is None else torch.addcmul(shift, normal, scale)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        centred, chosen, weight, spread, inverse, normal, scale, rows = ctx.saved_tensors
        to_shift, to_scale = gradient.sum(0), (gradient * normal).sum(0)
        factor = inverse if scale is None else inverse * scale
        direct = gradient * factor
        # Parts of the gradient that every row gets through the variance, times its value, and the mean.
        through_variance = factor * inverse * to_scale / -len(centred)
        through_mean = factor * to_shift / -len(centred)
        to_weight = (chosen.T @ direct).addcmul_(spread, through_variance, value=len(centred))
        to_inputs = torch.addmm(weight @ through_mean, centred, (weight * through_variance) @ weight.T)
        to_inputs.index_add_(0, rows, direct @ weight.T)
        affine = (None, None) if scale is None else (to_scale, to_shift)
        return to_inputs, to_weight, None, *affine, None, None


def gram(values: Tensor) -> Tensor:
    """Products of all pairs of columns; except near the diagonal, each pair is computed once."""
    width = values.shape[1]
    result = values.new_empty(width, width)
    for start in range(0, width, _GRAM_COLUMNS):
        stop = min(start + _GRAM_COLUMNS, width)
        part = values[:, start:stop].T @ values[:, start:]
        result[start:stop, start:] = part
        result[stop:, start:stop] = part[:, stop - start :].T
    return result


@torch.no_grad()
def follow(norm: nn.BatchNorm1d, mean: Tensor, variance: Tensor, size: int) -> None:
    """Update the running statistics of batch norm as PyTorch does, with the unbiased variance."""
    assert norm.running_mean is not None and norm.running_var is not None and norm.momentum is not None
    norm.running_mean.lerp_(mean, norm.momentum)
    norm.running_var.lerp_(variance * size / (size - 1), norm.momentum)
