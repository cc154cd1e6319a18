"""Gradients of a method's loss against finite differences of the loss."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

SHIFT = 1e-6


def assert_gradients_match_central_differences(method: nn.Module, value: Callable[[], Tensor]) -> None:
    """At two entries of every parameter: the one with the largest gradient and the one in the middle.

    A parameter without a gradient has no effect on the loss.

    Args:
        method: In double precision.
        value: Its loss, with the same draws at every call.
    """
    method.zero_grad()
    value().backward()
    for name, weight in method.named_parameters():
        gradients = torch.zeros_like(weight) if weight.grad is None else weight.grad
        values, gradients = weight.detach().view(-1), gradients.view(-1)
        for index in {len(values) // 2, int(gradients.abs().argmax())}:
            kept, sides = values[index].item(), []
            for shift in (SHIFT, -SHIFT):
                values[index] = kept + shift
                sides.append(value().item())
            values[index] = kept
            expected = (sides[0] - sides[1]) / (2 * SHIFT)
            assert gradients[index].item() == pytest.approx(expected, rel=1e-4, abs=1e-7), (name, index)
