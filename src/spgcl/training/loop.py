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
from spgcl.errors import InputError
from spgcl.methods.method import Method, Prepared
from spgcl.training.advice import remedies
from spgcl.training.group import Group
from spgcl.training.step import Checkpoint, Step

Observer = Callable[[Method, Prepared], dict[str, float]]

# Seconds between two reports of the loss.
REPORT_EVERY = 0.2
# Steps between two decisions of the process that leads others.
DECIDE_EVERY = 10


@dataclass
class History:
    """The record of a training.

    Attributes:
        observations: Numbers observed between steps, each record with its `step`.
        resumed_from: Step of the checkpoint that this training continued, or None.
        finished: Whether all steps were done.
    """

    losses: list[float] = field(default_factory=list)
    observations: list[dict[str, float]] = field(default_factory=list)
    resumed_from: int | None = None
    finished: bool = False


@dataclass(frozen=True)
class Controls:
    """What happens around the steps: checkpoints, progress, stopping, observations.

    Attributes:
        start: A checkpoint to continue from.
        save: Receives a checkpoint every `save_every` seconds and when training is stopped.
        save_every: Seconds between checkpoints.
        save_last: Whether to save one after the last step too, as what follows takes long.
        progress: Called with the number of finished steps and the last loss, a few times per second; before
            the first step the loss is NaN.
        stop: Called after every step; training ends if it returns True.
        observe: Called before training, every `observe_every` steps, and at the end.
        observe_every: 0 observes nothing.
        group: The processes that train together, asked for when training begins; None for this one alone.
    """

    start: Checkpoint | None = None
    save: Callable[[Checkpoint], None] | None = None
    save_every: float = 60.0
    save_last: bool = False
    progress: Callable[[int, float], None] | None = None
    stop: Callable[[], bool] | None = None
    observe: Observer | None = None
    observe_every: int = 0
    group: Callable[[], Group | None] = lambda: None

    def decisions(self, group: Group | None, done: int, *, last: bool, unsaved: float) -> tuple[bool, bool]:
        """Whether to stop, and whether to save; of several processes the leader decides."""
        stopping = self.stop is not None and self.stop()
        save_due = self.save_last if last else unsaved > self.save_every or stopping
        if group is not None:
            # Now and then: a message in every step would take a part of it.
            decided = last or done % DECIDE_EVERY == 0
            stopping, save_due = group.share((stopping, save_due)) if decided else (False, False)
        return stopping, save_due and self.save is not None

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
    group = control.group()
    generator = draws(seed, device, 0 if group is None else group.rank)
    take_step = Step(method, prepared, method.optimiser(), generator, group)
    if control.start is None:
        history = History(observations=control.observations(method, prepared, 0))
    else:
        start = control.start
        take_step.restore(start)
        history = History(list(start.losses), list(start.observations), resumed_from=start.step)
    done = len(history.losses)
    losses = torch.full((method.steps,), math.nan, device=device)
    losses[:done] = torch.tensor(history.losses, device=device)
    if control.progress and done < method.steps:
        control.progress(done, math.nan)
    saved = reported = time.monotonic()
    stopping = False
    while done < method.steps and not stopping:
        loss = take_step(done)
        if loss is None:
            break
        method.after_step(done)
        losses[done] = loss
        done += 1

        now = time.monotonic()
        last = done == method.steps
        stopping, save_due = control.decisions(group, done, last=last, unsaved=now - saved)
        # Reading a loss waits for an accelerator, so it is read a few times per second only.
        report_due = now - reported > REPORT_EVERY or last
        if save_due or report_due or not is_accelerator(device):
            _require_finite(losses, done, method)
        if report_due:
            if control.progress:
                control.progress(done, float(losses[done - 1]))
            reported = time.monotonic()
        history.observations += control.observations(method, prepared, done)
        if control.save and save_due:
            history.losses = losses[:done].tolist()
            control.save(take_step.checkpoint(history.losses, history.observations))
            saved = time.monotonic()

    history.losses = losses[:done].tolist()
    history.finished = done >= method.steps or not done
    return history


def draws(seed: int, device: torch.device, rank: int = 0) -> torch.Generator:
    """The generator of a process's draws, independent of the one that initialised the weights."""
    words = np.random.SeedSequence([seed, 1, *([rank] if rank else [])]).generate_state(1, np.uint32)
    return torch.Generator(device).manual_seed(int(words[0]))


def _require_finite(losses: Tensor, done: int, method: Method) -> None:
    # On the host, which has to wait anyway: on an accelerator this would load more kernels.
    bad = (~losses[:done].cpu().isfinite()).nonzero()
    if len(bad):
        step = int(bad[0])
        raise InputError(f"the loss became {float(losses[step])} at step {step + 1}; {remedies(method)}")
