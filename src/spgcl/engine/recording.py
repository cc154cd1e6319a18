"""Capturing CUDA graphs, and preparing CUDA for it."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import TypeVar

import torch

Result = TypeVar("Result")


@contextmanager
def side_stream() -> Iterator[None]:
    """Run work that is captured later, so that libraries initialise themselves.

    Work that first ran on the default stream cannot be captured later.
    """
    stream = _stream(torch.cuda.current_device())
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        yield
    torch.cuda.current_stream().wait_stream(stream)


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
def initialising(device: torch.device) -> Iterator[None]:
    """Initialise CUDA in a thread while other work is done, such as reading files."""
    if device.type != "cuda":
        yield
        return
    thread, succeeded = ThreadPoolExecutor(1), False
    # An error there occurs again, and is reported, when CUDA is used.
    thread.submit(_first_products, device)
    try:
        yield
        succeeded = True
    finally:
        # An error is reported without waiting for the thread.
        thread.shutdown(wait=succeeded)


def _first_products(device: torch.device) -> None:
    """A product and its gradient: the forward and the backward thread each have a handle of cuBLAS."""
    with side_stream():
        square = torch.ones(64, 64, device=device, requires_grad=True)
        torch.autograd.backward((square @ square).sum())


@cache
def _stream(device: int) -> torch.cuda.Stream:
    """One stream for all: cuBLAS keeps a workspace per stream, and with it gigabytes of cached memory."""
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
