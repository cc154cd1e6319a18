"""Many smooth convex problems minimised side by side."""

from collections.abc import Callable

import torch
from torch import Tensor

Objective = Callable[[Tensor], tuple[Tensor, Tensor]]

_HISTORY = 20
_SUFFICIENT_DECREASE = 1e-4
_HALVINGS = 20
# A value that falls by no more than its rounding for this many steps in a row has arrived.
_STALLED_STEPS = 5


@torch.no_grad()
def minimise(objective: Objective, start: Tensor, *, tolerance: float, iterations: int) -> Tensor:
    """Minimise each row's own function by L-BFGS, all rows in the same evaluations.

    Every row has its own curvature history and step length, so its path is that of the row alone. A row stops
    when its largest gradient entry is at most `tolerance`, or when steps change its value by rounding only.

    Args:
        objective: From points (problems, width) to values (problems,) and gradients (problems, width).
        start: Where to begin, shape (problems, width).
        tolerance: Largest gradient entry of a finished row.
        iterations: Most steps.
    """
    points = start.clone()
    values, gradients = objective(points)
    moves: list[Tensor] = []
    changes: list[Tensor] = []
    done = gradients.abs().amax(dim=1) <= tolerance
    stalled = torch.zeros(len(points), dtype=torch.int64, device=points.device)
    for _ in range(iterations):
        if done.all():
            break
        directions = _direction(gradients, moves, changes)
        new_points, new_values, new_gradients = _line_search(
            objective, points, values, gradients, directions, done
        )
        move = new_points - points
        moves, changes = [*moves[1 - _HISTORY :], move], [*changes[1 - _HISTORY :], new_gradients - gradients]
        falls = values - new_values > 4 * torch.finfo(values.dtype).eps * values.abs()
        stalled = torch.where(falls, 0, stalled + 1)
        points, values, gradients = new_points, new_values, new_gradients
        done |= (gradients.abs().amax(dim=1) <= tolerance) | (stalled >= _STALLED_STEPS)
    return points


def _direction(gradients: Tensor, moves: list[Tensor], changes: list[Tensor]) -> Tensor:
    """The two-loop recursion, row by row; a move that showed no curvature has no part in it."""
    direction = -gradients
    if not moves:
        # Nothing is known about the scale yet: no entry moves by more than 1.
        return direction / gradients.abs().amax(dim=1, keepdim=True).clamp(min=1)
    curvatures = [
        (move * change).sum(dim=1, keepdim=True) for move, change in zip(moves, changes, strict=True)
    ]
    inverses = [torch.where(product > 0, 1 / product, 0) for product in curvatures]
    steps = list(zip(moves, changes, inverses, strict=True))
    parts = []
    for move, change, inverse in reversed(steps):
        parts.append(inverse * (move * direction).sum(dim=1, keepdim=True))
        direction = direction - parts[-1] * change
    squares = changes[-1].square().sum(dim=1, keepdim=True)
    direction = direction * torch.where(curvatures[-1] > 0, curvatures[-1] / squares, 1)
    for (move, change, inverse), part in zip(steps, reversed(parts), strict=True):
        direction = direction + move * (part - inverse * (change * direction).sum(dim=1, keepdim=True))
    return direction


def _line_search(
    objective: Objective, points: Tensor, values: Tensor, gradients: Tensor, directions: Tensor, done: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Halve each row's step until its value falls enough; rows that are done, or never fall, stay."""
    slopes = (gradients * directions).sum(dim=1)
    # Close to the minimum the fall drowns in rounding, and a step within the rounding is as good as any.
    slack = torch.finfo(values.dtype).eps * values.abs()
    lengths = torch.where(done | (slopes >= 0), 0.0, 1.0).to(points)
    for _ in range(_HALVINGS):
        new_points = points + lengths[:, None] * directions
        new_values, new_gradients = objective(new_points)
        accepted = new_values <= values + _SUFFICIENT_DECREASE * lengths * slopes + slack
        if accepted.all():
            return new_points, new_values, new_gradients
        lengths = torch.where(accepted, lengths, lengths / 2)
    lengths = torch.where(accepted, lengths, 0.0)
    new_points = points + lengths[:, None] * directions
    return new_points, *objective(new_points)
