"""Learning-rate schedules and moving averages."""

import math

import torch
from torch import nn


def cosine_schedule(step: int, steps: int, warm_up: float = 0.0) -> float:
    """Fraction of the peak value: a linear rise over `warm_up` steps, then half a cosine down to 0."""
    if step < warm_up:
        return step / warm_up
    return (1 + math.cos(math.pi * (step - warm_up) / (steps - warm_up))) / 2


@torch.no_grad()
def move_average(average: nn.Module, current: nn.Module, decay: float) -> None:
    """Move the weights of `average` towards those of `current`, Eq. 3."""
    torch._foreach_lerp_(list(average.parameters()), list(current.parameters()), 1 - decay)
