"""One update of the weights: computed anew, or recorded once on CUDA and replayed."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Literal, get_args

import torch
from torch import Tensor

from spgcl.errors import unknown
from spgcl.methods.method import Method, Prepared
from spgcl.optimiser import Adam
from spgcl.recording import aside, recording

Precision = Literal["auto", "float32", "tf32"]

# Steps computed before one is recorded: libraries and the optimiser set themselves up in the first ones.
WARM_UP = 3


class Step:
    """Loss, gradients and update of a method.

    A method whose steps are all alike (`Method.is_static`) has its fourth one recorded as a CUDA graph; from
    then on a step is one launch. The draws go on from where the generator is, recorded or not.
    """

    def __init__(
        self,
        method: Method,
        prepared: Prepared,
        optimiser: Adam,
        generator: torch.Generator,
    ) -> None:
        self._method, self._prepared = method, prepared
        self._optimiser, self._generator = optimiser, generator
        self._recordable = method.is_static(prepared)
        self._computed = 0
        self._recording: tuple[torch.cuda.CUDAGraph, Tensor] | None = None

    def __call__(self, number: int) -> Tensor | None:
        """Take a step; gives back its loss, or None where there is nothing left to train."""
        self._optimiser.rate = self._method.rate(number)
        if not self._recordable:
            return self._compute(number)
        if self._computed < WARM_UP:
            self._computed += 1
            with aside():
                return self._compute(number)
        if self._recording is None:
            self._recording = self._record(number)
        graph, loss = self._recording
        graph.replay()
        return loss

    def _compute(self, number: int) -> Tensor | None:
        loss = self._method.loss(self._prepared, number, self._generator)
        if loss is None:
            return None
        self._optimiser.drop_gradients()
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimiser.step()
        return loss.detach()

    def _record(self, number: int) -> tuple[torch.cuda.CUDAGraph, Tensor]:
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self._generator)
        self._optimiser.drop_gradients()
        with recording(graph):
            loss = self._compute(number)
        assert loss is not None
        return graph, loss


@contextmanager
def arithmetic(
    device: torch.device, precision: str = "auto", *, deterministic: bool = False
) -> Iterator[None]:
    """How products are computed while this is open.

    Args:
        device: Where they are computed; only CUDA has a choice.
        precision: Factors as "float32", or rounded to ten bits of fraction ("tf32"), which "auto" takes.
        deterministic: Add gradients up in a fixed order, so that a seed gives the same bytes on CUDA too.
    """
    if precision not in get_args(Precision):
        raise unknown("precision", precision, list(get_args(Precision)))
    if device.type != "cuda":
        yield
        return
    earlier = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest" if precision == "float32" else "high")
    try:
        with _fixed_order() if deterministic else nullcontext():
            yield
    finally:
        torch.set_float32_matmul_precision(earlier)


@contextmanager
def _fixed_order() -> Iterator[None]:
    """Torch's switch for determinism, without the import of its compiler that the usual one brings."""
    # Read by the library when it is first used.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    earlier = torch.get_deterministic_debug_mode()
    torch.set_deterministic_debug_mode("error")
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(earlier)
