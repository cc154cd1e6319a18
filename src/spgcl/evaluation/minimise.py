"""Many smooth convex problems minimised at the same time."""

from collections.abc import Callable

import torch
from torch import Tensor

Objective = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]

_HISTORY = 20
_SUFFICIENT_DECREASE = 1e-4
_HALVINGS = 20
# A row is finished if its value falls by no more than rounding for this many steps in a row.
_STALLED_STEPS = 10
# Steps between two checks for finished problems, each of which waits for the device.
_STEPS_PER_CHECK = 5


@torch.no_grad()
def minimise(objective: Objective, start: Tensor, *, tolerance: float, iterations: int) -> Tensor:
    """Minimise one function per row by L-BFGS, with all rows in the same evaluations.

    Every row has its own curvature history and step length, so other rows do not influence it. A row stops
    when its largest gradient entry is at most `tolerance`, or when steps change its value by rounding only. A
    problem that has stopped in all groups is no longer evaluated.

    Args:
        objective: From points (groups, some of the problems, width) and the indices of these problems to
            values (groups, some of the problems) and gradients of the shape of the points.
        start: First points, shape (groups, problems, width).
        tolerance: Largest gradient entry of a finished row.
        iterations: Maximum number of steps.
    """
    found = start.clone()
    descent = _Descent(objective, start, tolerance)
    for iteration in range(iterations):
        if iteration % _STEPS_PER_CHECK == 0:
            finished = descent.done.all(dim=0)
            if finished.all():
                break
            if finished.any():
                found[:, descent.problems] = descent.points
                descent.narrow((~finished).nonzero().squeeze(1))
        descent.step()
    found[:, descent.problems] = descent.points
    return found


class _Descent:
    """The current points of some problems, and the last steps of their history."""

    def __init__(self, objective: Objective, start: Tensor, tolerance: float) -> None:
        self._objective, self._tolerance = objective, tolerance
        self.problems = torch.arange(start.shape[1], device=start.device)
        self.points = start
        self._values, self._gradients = objective(start, self.problems)
        self.done = self._gradients.abs().amax(dim=2) <= tolerance
        self._stalled = torch.zeros_like(self.done, dtype=torch.int64)
        # Per step: the move, the change of the gradient, and one over their product.
        self._steps: list[tuple[Tensor, Tensor, Tensor]] = []

    def narrow(self, left: Tensor) -> None:
        """Continue with some of the problems only."""
        self.problems = self.problems[left]
        self.points, self._values, self._gradients, self.done, self._stalled = (
            part[:, left] for part in (self.points, self._values, self._gradients, self.done, self._stalled)
        )
        self._steps = [
            (move[:, left], change[:, left], inverse[:, left]) for move, change, inverse in self._steps
        ]

    def step(self) -> None:
        points, values, gradients = self._line_search(_direction(self._gradients, self._steps))
        move, change = points - self.points, gradients - self._gradients
        product = (move * change).sum(dim=2, keepdim=True)
        # A move without positive curvature is left out of later directions.
        inverse = torch.where(product > 0, 1 / product, 0)
        self._steps = [*self._steps[1 - _HISTORY :], (move, change, inverse)]
        falls = self._values - values > 4 * torch.finfo(values.dtype).eps * self._values.abs()
        self._stalled = torch.where(falls, 0, self._stalled + 1)
        self.points, self._values, self._gradients = points, values, gradients
        self.done |= (gradients.abs().amax(dim=2) <= self._tolerance) | (self._stalled >= _STALLED_STEPS)

    def _line_search(self, directions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Halve each row's step until its value falls enough; rows that are done, or never fall, stay."""
        descents = (self._gradients * directions).sum(dim=2)
        # Close to the minimum, the decrease is smaller than rounding errors; any step within these will do.
        slack = torch.finfo(descents.dtype).eps * self._values.abs()
        lengths = torch.where(self.done | (descents >= 0), 0.0, 1.0).to(directions)
        for _ in range(_HALVINGS):
            points = torch.addcmul(self.points, lengths[..., None], directions)
            values, gradients = self._objective(points, self.problems)
            accepted = values <= self._values + _SUFFICIENT_DECREASE * lengths * descents + slack
            if accepted.all():
                return points, values, gradients
            lengths = torch.where(accepted, lengths, lengths / 2)
        points = torch.addcmul(self.points, torch.where(accepted, lengths, 0.0)[..., None], directions)
        return points, *self._objective(points, self.problems)


def _direction(gradients: Tensor, steps: list[tuple[Tensor, Tensor, Tensor]]) -> Tensor:
    """The two-loop recursion, for each row."""
    direction = -gradients
    if not steps:
        # The scale is still unknown: no entry moves by more than 1.
        return direction / gradients.abs().amax(dim=2, keepdim=True).clamp(min=1)
    parts = []
    for move, change, inverse in reversed(steps):
        parts.append(inverse * (move * direction).sum(dim=2, keepdim=True))
        direction.addcmul_(change, parts[-1], value=-1)
    _, change, inverse = steps[-1]
    squares = change.square().sum(dim=2, keepdim=True)
    direction *= torch.where(inverse > 0, 1 / (inverse * squares), 1)
    for (move, change, inverse), part in zip(steps, reversed(parts), strict=True):
        direction.addcmul_(move, part - inverse * (change * direction).sum(dim=2, keepdim=True))
    return direction
