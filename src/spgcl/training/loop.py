"""The only training loop."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spgcl.engine.device import is_accelerator
from spgcl.engine.optimiser import Adam
from spgcl.errors import InputError
from spgcl.methods.method import Method, Prepared
from spgcl.training.advice import remedies
from spgcl.training.step import Step

Observer = Callable[[Method, Prepared], dict[str, float]]

# Seconds between two reports of the loss.
REPORT_EVERY = 0.2


@dataclass
class History:
    """The record of a training.

    Attributes:
        losses: One per step.
        observations: Numbers observed between steps, each record with its `step`.
        resumed_from: Step of the checkpoint that this training continued, or None.
        finished: Whether all steps were done.
    """

    losses: list[float] = field(default_factory=list)
    observations: list[dict[str, float]] = field(default_factory=list)
    resumed_from: int | None = None
    finished: bool = False


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


@dataclass(frozen=True)
class Controls:
    """What happens around the steps: checkpoints, progress, stopping, observations.

    Attributes:
        start: A checkpoint to continue from.
        save: Receives a checkpoint every `save_every` seconds and when training is stopped.
        save_every: Seconds between checkpoints.
        progress: Called with the number of finished steps and the last loss, a few times per second.
        stop: Called after every step; training ends if it returns True.
        observe: Called before training, every `observe_every` steps, and at the end.
        observe_every: 0 observes nothing.
    """

    start: Checkpoint | None = None
    save: Callable[[Checkpoint], None] | None = None
    save_every: float = 60.0
    progress: Callable[[int, float], None] | None = None
    stop: Callable[[], bool] | None = None
    observe: Observer | None = None
    observe_every: int = 0

    def observations(self, method: Method, prepared: Prepared, done: int) -> list[dict[str, float]]:
        """One record if an observation is due after `done` steps, else none."""
        due = self.observe_every and (done % self.observe_every == 0 or done == method.steps)
        return [{"step": done, **self.observe(method, prepared)}] if self.observe and due else []


def train(method: Method, prepared: Prepared, *, seed: int, **controls: Any) -> History:
    """Minimise the method's loss for its number of steps, if it has any.

    Args:
        method: Moved to the device of `prepared` and trained in place.
        prepared: What `method.prepare` returned.
        seed: Decides every draw.
        controls: See `Controls`.
    """
    control = Controls(**controls)
    device = prepared.graph.device
    method.to(device).train()
    prepared.watching = control.observe_every > 0
    if not method.steps:
        return History(observations=control.observations(method, prepared, 0), finished=True)
    optimiser, generator = method.optimiser(), draws(seed, device)
    if control.start is None:
        history = History(observations=control.observations(method, prepared, 0))
    else:
        history = _restore(control.start, method, prepared, optimiser, generator)
    done = len(history.losses)
    losses = torch.full((method.steps,), math.nan, device=device)
    losses[:done] = torch.tensor(history.losses, device=device)
    saved = reported = time.monotonic()
    take_step = Step(method, prepared, optimiser, generator)
    stopping = False
    while done < method.steps and not stopping:
        loss = take_step(done)
        if loss is None:
            break
        method.after_step(done)
        losses[done] = loss
        done += 1

        now = time.monotonic()
        stopping = control.stop is not None and control.stop()
        save_due = control.save is not None and (now - saved > control.save_every or stopping)
        # Reading a loss waits for an accelerator, so it is read a few times per second only.
        report_due = now - reported > REPORT_EVERY or done == method.steps
        if save_due or report_due or not is_accelerator(device):
            _require_finite(losses, done, method)
        if report_due:
            reported = _report(control.progress, done, losses)
        history.observations += control.observations(method, prepared, done)
        if control.save and save_due and done < method.steps:
            history.losses = losses[:done].tolist()
            control.save(_checkpoint(method, prepared, optimiser, generator, history))
            saved = time.monotonic()

    history.losses = losses[:done].tolist()
    history.finished = done >= method.steps or not done
    return history


def _report(progress: Callable[[int, float], None] | None, done: int, losses: Tensor) -> float:
    """Report the last loss; returns the time."""
    if progress:
        progress(done, float(losses[done - 1]))
    return time.monotonic()


def draws(seed: int, device: torch.device) -> torch.Generator:
    """The generator of a training's draws, independent of the one that initialised the weights."""
    words = np.random.SeedSequence([seed, 1]).generate_state(1, np.uint32)
    return torch.Generator(device).manual_seed(int(words[0]))


def _require_finite(losses: Tensor, done: int, method: Method) -> None:
    # On the host, which has to wait anyway: on an accelerator this would load more kernels.
    bad = (~losses[:done].cpu().isfinite()).nonzero()
    if len(bad):
        step = int(bad[0])
        raise InputError(f"the loss became {float(losses[step])} at step {step + 1}; {remedies(method)}")


def _checkpoint(
    method: Method,
    prepared: Prepared,
    optimiser: Adam,
    generator: torch.Generator,
    history: History,
) -> Checkpoint:
    return Checkpoint(
        step=len(history.losses),
        weights=method.state_dict(),
        optimiser=optimiser.state(),
        generator=generator.get_state(),
        memory=prepared.memory,
        losses=history.losses,
        observations=history.observations,
    )


def _restore(
    start: Checkpoint,
    method: Method,
    prepared: Prepared,
    optimiser: Adam,
    generator: torch.Generator,
) -> History:
    method.load_state_dict(start.weights)
    optimiser.load(start.optimiser)
    generator.set_state(start.generator)
    prepared.memory.update({name: value.to(prepared.graph.device) for name, value in start.memory.items()})
    return History(list(start.losses), list(start.observations), resumed_from=start.step)
