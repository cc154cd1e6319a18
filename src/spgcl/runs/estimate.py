"""How long a training will take, said once it has begun, and what would shorten it."""

import time
from collections.abc import Callable

from spgcl.errors import note
from spgcl.methods import find, parameters
from spgcl.runs.record import Run

Progress = Callable[[int, float], None]
# Trainings shorter than this, in seconds, are not announced.
LONG = 120.0


def estimating(run: Run, progress: Progress | None) -> Progress:
    """The same progress, with a note as soon as a few steps say that the training will take long."""
    began: list[tuple[int, float]] = []

    def report(step: int, loss: float) -> None:
        if progress:
            progress(step, loss)
        now = time.monotonic()
        if not began:
            began.append((step, now))
        elif len(began) == 1 and step > began[0][0]:
            # Of the first steps only the time between them is taken: before, libraries initialise themselves.
            rate = (now - began[0][1]) / (step - began[0][0])
            began.append((step, now))
            left = rate * (run.settings["steps"] - step)
            if left > LONG:
                ways = shorter(run, rate)
                note(f"about {_minutes(left)} left, {rate:.2g} s per step; to shorten it: {ways}")

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
    ways.append(f"--steps {fewer} ({_minutes(rate * fewer)})")
    if "hidden" in known and settings["hidden"] > 256:
        ways.append("--set hidden=256")
    return ", ".join([*ways, "or --method auto, which trains nothing"])


def _minutes(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds > 5400 else f"{max(1, seconds / 60):.0f} min"
