"""How long a training will take, said once it has begun, and what would shorten it."""

import math
import time
from collections.abc import Callable

from spgcl.errors import note
from spgcl.graph.display import lasting
from spgcl.methods import find, parameters
from spgcl.runs.record import Run

Progress = Callable[[int, float], None]
# Trainings shorter than this, in seconds, are not announced.
LONG = 120.0
# A first step on CPU of so many seconds takes long for what it computes, not for libraries that initialise.
LONG_STEP = 5.0


def estimating(run: Run, progress: Progress | None) -> Progress:
    """The same progress, with a note as soon as steps say that the training will take long.

    That is after the first step if it took long, else by the time between the first reports.
    """
    marks: list[tuple[int, float]] = []
    timed = False

    def report(step: int, loss: float) -> None:
        nonlocal timed
        if progress and not math.isnan(loss):
            progress(step, loss)
        now = time.monotonic()
        if marks and not timed:
            before, then = marks[-1]
            rate = (now - then) / max(1, step - before)
            timed = len(marks) > 1 or (rate > LONG_STEP and run.device == "cpu")
            left = rate * (run.settings["steps"] - step)
            if timed and left > LONG:
                ways = shorter(run, rate)
                note(f"about {lasting(left)} left, {rate:.2g} s per step; to shorten it: {ways}")
        if not timed:
            marks.append((step, now))

    return report


def shorter(run: Run, rate: float) -> str:
    """What would shorten a training of so many seconds per step, by the settings that the method has."""
    known, settings = parameters(find(run.method)), run.settings
    ways = []
    if settings.get("batch_norm_rows", "pool") != "pool":
        ways.append("--set batch_norm_rows=pool")
    if settings.get("fan_out") == 0 and run.graph["num_edges"] > 10 * run.graph["num_nodes"]:
        ways.append("--set fan_out=10")
    fewer = max(1, settings["steps"] // 4)
    ways.append(f"--steps {fewer} ({lasting(rate * fewer)})")
    if "hidden" in known and settings["hidden"] > 256:
        ways.append("--set hidden=256")
    return ", ".join([*ways, "or --method auto, which trains nothing"])
