"""One update of the weights: computed anew, or recorded once on CUDA and replayed."""

import torch
from torch import Tensor

from spgcl.engine.optimiser import Adam
from spgcl.engine.recording import capture, side_stream
from spgcl.methods.method import Method, Prepared

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
        self._optimiser.rate = self._method.learning_rate_at(number)
        if not self._recordable:
            return self._compute(number)
        if self._computed < WARM_UP:
            self._computed += 1
            with side_stream():
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
        with capture(graph):
            loss = self._compute(number)
        assert loss is not None
        return graph, loss
