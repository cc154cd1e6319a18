"""Work that is recorded as a CUDA graph, what has to run before it, and what may."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import TypeVar

import torch

Result = TypeVar("Result")


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


def captured(
    compute: Callable[[], Result], generator: torch.Generator | None = None
) -> tuple[Callable[[], None], Result]:
    """Work as a CUDA graph, after it ran on the side stream: what replays it, and what it returned.

    Args:
        compute: The work; every replay writes into the tensors that it returned.
        generator: What it draws from; its state goes on with every replay.
    """
    graph = torch.cuda.CUDAGraph()
    if generator is not None:
        graph.register_generator_state(generator)
    with torch.cuda.graph(graph, stream=_stream(torch.cuda.current_device())):
        result = compute()
    return graph.replay, result


@contextmanager
def waking(device: torch.device) -> Iterator[None]:
    """Have CUDA set itself up beside what is done meanwhile, such as reading files."""
    if device.type != "cuda":
        yield
        return
    beside, ended_well = ThreadPoolExecutor(1), False
    # Whatever fails there fails again, and is told, where it is needed.
    beside.submit(_first_products, device)
    try:
        yield
        ended_well = True
    finally:
        # An error is told before this is waited for.
        beside.shutdown(wait=ended_well)


def _first_products(device: torch.device) -> None:
    """A product and its gradient: forward and backward have a thread, and a handle of cuBLAS, each."""
    with aside():
        square = torch.ones(64, 64, device=device, requires_grad=True)
        torch.autograd.backward((square @ square).sum())


@cache
def _stream(device: int) -> torch.cuda.Stream:
    """One for all: cuBLAS keeps memory for every stream it has seen, and with it the gigabytes around it."""
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
