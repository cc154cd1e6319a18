"""What `fit` and `compare` share: a request from names, files and objects in memory."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import torch

from spgcl.engine.device import choose_device, use_threads
from spgcl.face.progress import progress_line
from spgcl.runs.estimate import estimating
from spgcl.runs.kept import given_in_memory, options_of
from spgcl.runs.plan import Request, Watch
from spgcl.runs.record import Run
from spgcl.training.loop import Controls

Progress = Callable[[int, float], None]
# A function of steps and loss; True and None show progress as the commands do, False shows none.
Shown = Progress | bool | None


def device_of(name: str, threads: int | None) -> torch.device:
    """The device, after setting the number of CPU threads."""
    if threads:
        use_threads(threads)
    return choose_device(name)


def with_graph(request: Request, graph: Any, features: Any, labels: Any, reading: dict[str, Any]) -> Request:
    """The request with its graph, features and labels by name or in memory."""
    options = options_of(reading, features)
    loaded = given_in_memory(graph, options, features, labels)
    if loaded is not None:
        options = replace(options, features=None, directed=loaded.graph.directed)
    name = loaded.name if loaded else str(graph)
    path = Path(labels) if isinstance(labels, str | PathLike) else None
    return replace(request, graph=name, options=options, loaded=loaded, labels=path)


def watching(progress: Shown) -> Watch:
    """Trainings that report to a function, or as the commands do, and are not stopped."""

    @contextmanager
    def watch(run: Run) -> Iterator[Controls]:
        steps = run.settings.get("steps", 0)
        title, quiet = f"{run.dataset} {run.method}", callable(progress) or progress is False or not steps
        tail = "loss {task.fields[loss]:.4f}"
        with progress_line(
            title, total=steps, amount="steps", tail=tail, quiet=quiet, loss=float("nan")
        ) as update:
            own = progress if callable(progress) else None
            drawn = update and (lambda step, loss: update(completed=step, loss=loss))
            yield Controls(progress=estimating(run, own or drawn))

    return watch
