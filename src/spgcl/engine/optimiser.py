"""Adam, by torch's fused operation."""

from collections.abc import Iterable, Mapping
from functools import partial

import torch
from torch import Tensor

# Decay of the two moving averages, and the term that keeps their quotient finite.
FIRST_DECAY, SECOND_DECAY, EPSILON = 0.9, 0.999, 1e-8


# A weight, its number of updates, and the moving averages of its gradient and of the square of that.
_Moments = tuple[Tensor, Tensor, Tensor, Tensor]


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
        self._groups = [([_moments_of(weight) for weight in weights], decay) for weights, decay in groups]
        update = torch._fused_adamw_ if decoupled else torch._fused_adam_
        self._update = partial(
            update, beta1=FIRST_DECAY, beta2=SECOND_DECAY, eps=EPSILON, amsgrad=False, maximize=False
        )
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
        return [entry[0] for entries, _ in self._groups for entry in entries]

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
            ready = [entry for entry in entries if entry[0].grad is not None]
            if not ready:
                continue
            weights, updates, first, second = map(list, zip(*ready, strict=True))
            torch._foreach_add_(updates, 1)
            self._update(
                weights,
                [weight.grad for weight in weights],
                first,
                second,
                [],
                updates,
                lr=self._read,
                weight_decay=decay,
            )

    def state(self) -> dict[str, Tensor]:
        """The state of the next update besides weights, gradients and rate; not a copy."""
        entries = [entry for group, _ in self._groups for entry in group]
        return {
            f"{index}/{name}": value
            for index, entry in enumerate(entries)
            for name, value in zip(("updates", "first", "second"), entry[1:], strict=True)
        }

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Continue from a `state`."""
        for name, value in self.state().items():
            value.copy_(state[name])


def _moments_of(weight: Tensor) -> _Moments:
    updates = torch.zeros((), dtype=torch.float32, device=weight.device)
    return weight, updates, torch.zeros_like(weight), torch.zeros_like(weight)
