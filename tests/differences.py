"""Gradients of a method's loss against finite differences of the loss."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

SHIFT = 1e-6


def assert_gradients_match_central_differences(method: nn.Module, value: Callable[[], Tensor]) -> None:
    """At the entry of every trained parameter whose gradient is largest.

    Args:
        method: In double precision.
        value: Its loss, with the same draws at every call.
    """
    trained = {name: weight for name, weight in method.named_parameters() if weight.requires_grad}
    gradients = torch.autograd.grad(value(), list(trained.values()))
    for (name, weight), gradient in zip(trained.items(), gradients, strict=True):
        values, index = weight.detach().view(-1), int(gradient.abs().argmax())
        kept, sides = values[index].item(), []
        for shift in (SHIFT, -SHIFT):
            values[index] = kept + shift
            sides.append(value().item())
        values[index] = kept
        expected = (sides[0] - sides[1]) / (2 * SHIFT)
        assert gradient.view(-1)[index].item() == pytest.approx(expected, rel=1e-4, abs=1e-8), name
