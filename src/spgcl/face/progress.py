"""One calm line that says how far a command is."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal

Update = Callable[..., None]


# Seconds between two lines, where there is no terminal to draw a bar on.
EVERY = 10.0


class Lines:
    """Progress as lines of text on stderr, one now and then; in a notebook they replace each other."""

    def __init__(self, title: str, total: float | None) -> None:
        self._state: dict[str, Any] = {"description": title, "total": total}
        self._began = self._last = time.monotonic()
        self._end = "\r" if "ipykernel" in sys.modules else "\n"

    def __call__(self, **changed: Any) -> None:
        """Take what has changed, and write a line if one is due."""
        self._state |= changed
        now = time.monotonic()
        if now - self._last < EVERY:
            return
        self._last = now
        print(self._line(now - self._began), end=self._end, file=sys.stderr, flush=True)

    def _line(self, seconds: float) -> str:
        from spgcl.graph.display import lasting

        state = dict(self._state)
        title, total, done = state.pop("description"), state.pop("total"), state.pop("completed", 0)
        parts = [
            f"{name} {value:.4g}" if isinstance(value, float) else str(value) for name, value in state.items()
        ]
        if not total:
            return ", ".join([f"{title}: {seconds:.0f} s so far", *parts])
        left = [f"{lasting(seconds * (total - done) / done)} left"] if done else []
        return ", ".join([f"{title}: {100 * done / total:.0f} %", *parts, *left])


@contextmanager
def progress_line(
    title: str,
    *,
    total: float | None = None,
    amount: Literal["bytes", "fraction", "steps"] | None = None,
    tail: str | None = None,
    keep: bool = False,
    quiet: bool = False,
    **fields: Any,
) -> Iterator[Update | None]:
    """A bar on a terminal's stderr, elsewhere a line now and then; None if `quiet`.

    Yields a function that takes what has changed: `completed`, `total`, `description` or one of `fields`.
    What takes less than ten seconds writes no line.

    Args:
        title: What is being done.
        total: When it is done; None if that is not known yet.
        amount: How progress is written, followed by the time left; without it, the time so far is shown.
        tail: The end of the line, such as "{task.fields[loss]:.4f}".
        keep: Leave the line on the screen.
        quiet: Show nothing.
        fields: Initial values of what `tail` shows.
    """
    if quiet:
        yield None
        return
    if not sys.stderr.isatty():
        yield Lines(title, total)
        return
    from rich import progress
    from rich.console import Console

    amounts = {
        "bytes": progress.DownloadColumn,
        "fraction": progress.TaskProgressColumn,
        "steps": progress.MofNCompleteColumn,
    }
    columns: list[progress.ProgressColumn] = [
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        *([amounts[amount](), progress.TimeRemainingColumn()] if amount else [progress.TimeElapsedColumn()]),
        *([progress.TextColumn(tail)] if tail else []),
    ]
    with progress.Progress(*columns, console=Console(stderr=True), transient=not keep) as bar:
        yield partial(bar.update, bar.add_task(title, total=total, **fields))
