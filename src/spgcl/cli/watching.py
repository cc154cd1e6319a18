"""What happens around a training on the command line: progress, and Ctrl-C."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

from spgcl.face.progress import progress_line

if TYPE_CHECKING:
    from spgcl.runs.record import Run
    from spgcl.training.loop import Controls


@contextmanager
def watched(run: "Run", *, quiet: bool) -> "Iterator[Controls]":
    """Progress and Ctrl-C of one training."""
    from spgcl.runs.estimate import estimating
    from spgcl.training.loop import Controls

    steps = run.settings.get("steps", 0)
    with (
        progress_line(
            f"{run.dataset} {run.method}",
            total=steps,
            amount="steps",
            tail="loss {task.fields[loss]:.4f}",
            keep=True,
            quiet=quiet or not steps,
            loss=float("nan"),
        ) as update,
        stopping(trains=steps > 0) as stop,
    ):
        progress = update and (lambda step, loss: update(completed=step, loss=loss))
        yield Controls(progress=estimating(run, progress), stop=stop)


@contextmanager
def stopping(*, trains: bool) -> Iterator[Callable[[], bool]]:
    """The first Ctrl-C stops training after the current step, or at once if nothing is trained.

    The second one ends the process.
    """
    asked = False

    def ask(signum: int, frame: FrameType | None) -> None:
        del signum, frame
        nonlocal asked
        if asked:
            os._exit(130)
        if not trains:
            raise KeyboardInterrupt
        asked = True
        # Not through `sys.stderr`: the signal may have interrupted a write to it.
        os.write(2, b"\nnote: stopping after this step; Ctrl-C again stops immediately\n")

    earlier = signal.signal(signal.SIGINT, ask)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, earlier)
