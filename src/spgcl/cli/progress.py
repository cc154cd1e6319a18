"""One calm line that says how far a command is."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal

Update = Callable[..., None]


@contextmanager
def progress_line(
    title: str,
    *,
    total: float | None,
    amount: Literal["bytes", "fraction", "steps"] | None = None,
    tail: str | None = None,
    stays: bool = False,
    quiet: bool = False,
    **fields: Any,
) -> Iterator[Update | None]:
    """A bar with the time left on a terminal's stderr; None elsewhere, or where nothing is to be said.

    Gives back a function that takes what has changed: `completed`, `advance`, `total`, `description` or one
    of `fields`.

    Args:
        title: What is being done.
        total: When it is done; None where that is learned on the way.
        amount: How the fraction that is done is written, if at all.
        tail: What follows the time left, such as "{task.fields[loss]:.4f}".
        stays: Whether the line is left on the screen.
        quiet: Say nothing.
        fields: What `tail` shows, at the start.
    """
    if quiet or not sys.stderr.isatty():
        yield None
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
        *([amounts[amount]()] if amount else []),
        progress.TimeRemainingColumn(),
        *([progress.TextColumn(tail)] if tail else []),
    ]
    with progress.Progress(*columns, console=Console(stderr=True), transient=not stays) as bar:
        yield partial(bar.update, bar.add_task(title, total=total, **fields))
