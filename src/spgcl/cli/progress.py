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
    total: float | None = None,
    amount: Literal["bytes", "fraction", "steps"] | None = None,
    tail: str | None = None,
    keep: bool = False,
    quiet: bool = False,
    **fields: Any,
) -> Iterator[Update | None]:
    """A bar on a terminal's stderr; None elsewhere, or if `quiet`.

    Yields a function that takes what has changed: `completed`, `total`, `description` or one of `fields`.

    Args:
        title: What is being done.
        total: When it is done; None if that is not known yet.
        amount: How progress is written, followed by the time left; without it, the time so far is shown.
        tail: The end of the line, such as "{task.fields[loss]:.4f}".
        keep: Leave the line on the screen.
        quiet: Show nothing.
        fields: Initial values of what `tail` shows.
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
        *([amounts[amount](), progress.TimeRemainingColumn()] if amount else [progress.TimeElapsedColumn()]),
        *([progress.TextColumn(tail)] if tail else []),
    ]
    with progress.Progress(*columns, console=Console(stderr=True), transient=not keep) as bar:
        yield partial(bar.update, bar.add_task(title, total=total, **fields))
