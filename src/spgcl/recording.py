"""Work that is recorded as a CUDA graph, and what has to run before it."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import torch


@contextmanager
def aside() -> Iterator[None]:
    """Run once what is recorded later, so that libraries set themselves up.

    What ran on the stream of everybody cannot be recorded afterwards.
    """
    stream = _stream(torch.cuda.current_device())
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        yield
    torch.cuda.current_stream().wait_stream(stream)


@contextmanager
def recording(graph: torch.cuda.CUDAGraph) -> Iterator[None]:
    """Record what is run, after it was run aside."""
    with torch.cuda.graph(graph, stream=_stream(torch.cuda.current_device())):
        yield


@cache
def _stream(device: int) -> torch.cuda.Stream:
    """One for all: cuBLAS keeps memory for every stream it has seen, and with it the gigabytes around it."""
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
