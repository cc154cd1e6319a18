"""Seconds per phase; an accelerator is synchronised before every reading of the clock."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

# The first steps create what later ones reuse (on CUDA also a graph) and are not part of a step's time.
WARM_UP = {"cpu": 1, "cuda": 10}
FEWEST = {"cpu": 2, "cuda": 50}
MOST = 5000


class Stopwatch:
    """Seconds of one round's phases, by name."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.seconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time a block."""
        _wait(self.device)
        started = time.perf_counter()
        yield
        _wait(self.device)
        self.seconds[name] = time.perf_counter() - started

    def time(self, work: Callable[[], object]) -> float:
        """Seconds of a call, not kept."""
        with self.phase(""):
            work()
        return self.seconds.pop("")


@dataclass
class StepTimer:
    """Times steps as the difference of a longer and a shorter training.

    So the public training function is timed, whatever it does between steps, and what it does once (allocate,
    capture, check) is separate.

    Attributes:
        seconds: How long the difference should take, so that noise is small in comparison.
        count: Steps in the difference; chosen in the first round and kept, so that rounds are alike.
    """

    seconds: float = 0.5
    count: int = 0

    def measure(self, watch: Stopwatch, training: Callable[[int], Callable[[], object]]) -> None:
        """Add the phases `step` (one step) and `start` (what the first training did besides) to the watch.

        Args:
            watch: Gets the two phases.
            training: Makes fresh weights, untimed, and returns a training of that many steps.
        """
        warm_up = WARM_UP.get(watch.device.type, WARM_UP["cuda"])
        first = watch.time(training(warm_up))
        shorter = watch.time(training(warm_up))
        count = self.count or FEWEST.get(watch.device.type, FEWEST["cuda"])
        while True:
            difference = watch.time(training(warm_up + count)) - shorter
            if self.count or difference >= self.seconds or count >= MOST:
                break
            wanted = math.ceil(1.2 * self.seconds * count / difference) if difference > 0 else MOST
            count = min(MOST, max(2 * count, min(wanted, 20 * count)))
        self.count = count
        watch.seconds["step"] = difference / count
        watch.seconds["start"] = max(0.0, first - warm_up * difference / count)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()
