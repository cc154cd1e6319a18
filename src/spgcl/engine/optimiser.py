"""Adam, by torch's fused operation."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

# Decay of the two moving averages, and the term that keeps their quotient finite.
FIRST_DECAY, SECOND_DECAY, EPSILON = 0.9, 0.999, 1e-8


@dataclass(eq=False)
class _Moments:
    """A weight, its number of updates, and the moving averages of its gradient and of the square of that."""

    weight: Tensor
    updates: Tensor
    first: Tensor
    second: Tensor

    @classmethod
    def of(cls, weight: Tensor) -> "_Moments":
        updates = torch.zeros((), dtype=torch.float32, device=weight.device)
        return cls(weight, updates, torch.zeros_like(weight), torch.zeros_like(weight))


class Adam:
    """Adam and AdamW, over groups of weights that differ in their decay.

    The results equal those of torch's own optimisers with `fused=True`, byte by byte. Those import torch's
    compiler on first use, which takes seconds and is not needed.

    Args:
        groups: Weights of one device, each group with its weight decay.
        rate: The learning rate.
        decoupled: Whether decay shrinks the weights themselves (AdamW), or is part of the gradient (Adam).
    """

    def __init__(
        self, groups: Iterable[tuple[Iterable[Tensor], float]], rate: float, *, decoupled: bool
    ) -> None:
        self._groups = [([_Moments.of(weight) for weight in weights], decay) for weights, decay in groups]
        self._update = torch._fused_adamw_ if decoupled else torch._fused_adam_
        self._rate = rate
        # A captured update reads its rate on the device, so that it follows a schedule.
        device = self.weights[0].device
        self._read = (
            torch.tensor(rate, dtype=torch.float32, device=device)
            if device.type == "cuda"
            else torch.tensor(rate, dtype=torch.float64)
        )

    @property
    def weights(self) -> list[Tensor]:
        """All weights, in the order of their groups."""
        return [entry.weight for entries, _ in self._groups for entry in entries]

    @property
    def rate(self) -> float:
        """The learning rate; may be set between any two updates, captured or not."""
        return self._rate

    @rate.setter
    def rate(self, value: float) -> None:
        if value != self._rate:
            self._rate = value
            self._read.fill_(value)

    def drop_gradients(self) -> None:
        """Forget the gradients."""
        for weight in self.weights:
            weight.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Update every weight that has a gradient."""
        for entries, decay in self._groups:
            ready = [(entry, gradient) for entry in entries if (gradient := entry.weight.grad) is not None]
            if not ready:
                continue
            updates = [entry.updates for entry, _ in ready]
            torch._foreach_add_(updates, 1)
            self._update(
                [entry.weight for entry, _ in ready],
                [gradient for _, gradient in ready],
                [entry.first for entry, _ in ready],
                [entry.second for entry, _ in ready],
                [],
                updates,
                lr=self._read,
                beta1=FIRST_DECAY,
                beta2=SECOND_DECAY,
                weight_decay=decay,
                eps=EPSILON,
                amsgrad=False,
                maximize=False,
            )

    def state(self) -> dict[str, Tensor]:
        """The state of the next update besides weights, gradients and rate; not a copy."""
        entries = [entry for group, _ in self._groups for entry in group]
        return {
            f"{index}/{name}": getattr(entry, name)
            for index, entry in enumerate(entries)
            for name in ("updates", "first", "second")
        }

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Continue from a `state`."""
        for name, value in self.state().items():
            value.copy_(state[name])
