"""One update of the weights: computed operation by operation, or captured once on CUDA and replayed."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from spgcl.engine.optimiser import Adam
from spgcl.engine.recording import captured, side_stream
from spgcl.errors import InputError
from spgcl.methods.method import Method, Prepared
from spgcl.training.group import Group

# Steps before the captured one: libraries and the optimiser initialise themselves in the first ones.
WARM_UP = 3


@dataclass
class Checkpoint:
    """Everything that the next step depends on after `step` steps, with the history so far."""

    step: int
    weights: dict[str, Tensor]
    optimiser: dict[str, Tensor]
    generator: Tensor
    memory: dict[str, Tensor]
    losses: list[float]
    observations: list[dict[str, float]]

    def is_finite(self) -> bool:
        """Whether training can continue from these weights."""
        return all(bool(value.isfinite().all()) for value in self.weights.values())


class Step:
    """Loss, gradients and update of a method.

    If all steps of a method are alike (`Method.is_static`), the fourth is captured as a CUDA graph; from then
    on a step is one launch. Captured or not, draws continue from the generator's state.
    """

    def __init__(
        self,
        method: Method,
        prepared: Prepared,
        optimiser: Adam,
        generator: torch.Generator,
        group: Group | None = None,
    ) -> None:
        self._group = group
        self._method, self._prepared = method, prepared
        self._optimiser, self._generator = optimiser, generator
        self._is_static = group is None and method.is_static(prepared)
        # The generator's state before it drew ahead.
        self._state: Tensor | None = None
        self._computed = 0
        self._captured: tuple[Callable[[], None], Tensor | None] | None = None

    def __call__(self, number: int) -> Tensor | None:
        """Take a step; returns its loss, or None if there is nothing to train."""
        self._optimiser.rate = self._method.learning_rate_at(number)
        if not self._is_static:
            return self._compute(number)
        if self._computed < WARM_UP:
            self._computed += 1
            with side_stream():
                return self._compute(number)
        if self._captured is None:
            self._captured = self._capture(number)
        replay, loss = self._captured
        replay()
        return loss

    def checkpoint(self, losses: list[float], observations: list[dict[str, float]]) -> Checkpoint:
        """The state after as many steps as there are losses."""
        return Checkpoint(
            step=len(losses),
            weights=self._method.state_dict(),
            optimiser=self._optimiser.state(),
            generator=self._gathered(self._generator.get_state() if self._state is None else self._state),
            memory=self._prepared.memory,
            losses=losses,
            observations=observations,
        )

    def _gathered(self, state: Tensor) -> Tensor:
        return state if self._group is None else self._group.gather(state)

    def restore(self, start: Checkpoint) -> None:
        """Continue from a checkpoint."""
        try:
            self._method.load_state_dict(start.weights)
            self._optimiser.load(start.optimiser)
            state = start.generator
            self._generator.set_state(state if self._group is None else state[self._group.rank].clone())
        except (LookupError, RuntimeError, TypeError, ValueError) as error:
            reason = str(error).splitlines()[0]
            raise InputError(
                f"the checkpoint does not fit these settings ({reason}); start over with --overwrite"
            ) from None
        device = self._prepared.graph.device
        self._prepared.memory.update({name: value.to(device) for name, value in start.memory.items()})

    def _compute(self, number: int) -> Tensor | None:
        loss = self._method.loss(self._prepared, number, self._generator)
        if loss is None:
            return None
        self._optimiser.drop_gradients()
        loss.backward()  # type: ignore[no-untyped-call]
        if self._group is not None:
            self._average(self._group, number)
        self._optimiser.step()
        return loss.detach()

    @torch.no_grad()
    def _average(self, group: Group, number: int) -> None:
        """Average over processes; each begins its next step while it waits for the others."""
        weights = [weight for weight in self._method.trained_weights() if weight.grad is not None]
        # Running statistics too, so that all processes have the same method.
        buffers = [buffer for buffer in self._method.buffers() if buffer.is_floating_point()]
        means = group.average([*(weight.grad for weight in weights if weight.grad is not None), *buffers])
        self._state = self._generator.get_state()
        if number + 1 < self._method.steps and not self._method.is_static(self._prepared):
            self._prepared.drawn = self._method.draw(self._prepared, self._generator)
        averaged = means()
        for weight, mean in zip(weights, averaged, strict=False):
            weight.grad = mean
        for buffer, mean in zip(buffers, averaged[len(weights) :], strict=True):
            buffer.copy_(mean)

    def _capture(self, number: int) -> tuple[Callable[[], None], Tensor | None]:
        self._optimiser.drop_gradients()
        return captured(partial(self._compute, number), self._generator)
