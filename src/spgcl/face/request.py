"""What `fit` and `compare` share: a request from names, files and objects in memory."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import torch

from spgcl.engine.device import choose_device, use_threads
from spgcl.runs.kept import given_in_memory, options_of
from spgcl.runs.plan import Request, Watch
from spgcl.runs.record import Run
from spgcl.training.loop import Controls

Progress = Callable[[int, float], None]


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


def watching(progress: Progress | None) -> Watch:
    """Trainings that report to a function and are not stopped."""

    @contextmanager
    def watch(run: Run) -> Iterator[Controls]:
        del run
        yield Controls(progress=progress)

    return watch
