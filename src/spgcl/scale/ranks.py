"""Several processes that work on one run through torch.distributed."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor, distributed

from spgcl.scale.derived import Task

# A leader prepares a large graph while the others wait.
_PATIENCE = timedelta(hours=2)


class Ranks:
    """The processes of torch's default group; they train together and divide blocks among them."""

    def __init__(self) -> None:
        self.rank, self.count = distributed.get_rank(), distributed.get_world_size()
        # Kept from step to step: the system would clear new memory of this size every time.
        self._message, self._parts = torch.empty(0), list[Tensor]()

    @property
    def leads(self) -> bool:
        """Whether this process decides and writes."""
        return self.rank == 0

    def average(self, tensors: list[Tensor]) -> Callable[[], list[Tensor]]:
        """Begin to average tensors over all processes, in one message; returns what waits for the means."""
        if [part.shape for part in self._parts] != [tensor.shape for tensor in tensors]:
            sizes = [tensor.numel() for tensor in tensors]
            self._message = tensors[0].new_empty(sum(sizes))
            self._parts = list(map(Tensor.view_as, torch.split(self._message, sizes), tensors))
        torch._foreach_copy_(self._parts, tensors)
        sent = distributed.all_reduce(self._message, async_op=True)

        def means() -> list[Tensor]:
            sent.wait()
            self._message /= self.count
            return self._parts

        return means

    def gather(self, tensor: Tensor) -> Tensor:
        """The tensors of all processes, in order of their ranks."""
        parts = [torch.empty_like(tensor) for _ in range(self.count)]
        distributed.all_gather(parts, tensor.contiguous())
        return torch.stack(parts)

    def share(self, value: Any) -> Any:
        """The leader's value."""
        held = [value]
        distributed.broadcast_object_list(held, src=0)
        return held[0]

    def map(self, task: Task, indices: list[int]) -> Iterator[tuple[int, int]]:
        """The leader's indices with what the task returns for them; every process does its part."""
        indices = self.share(indices)
        for start in range(0, len(indices), self.count):
            mine = indices[start + self.rank : start + self.rank + 1]
            done: list[Any] = [None] * self.count
            distributed.all_gather_object(done, [(index, task(index)) for index in mine])
            for part in done:
                yield from part

    def wait(self) -> None:
        """Until all processes are here."""
        distributed.barrier()


def launched() -> bool:
    """Whether torchrun started this process as one of several."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1 and "RANK" in os.environ


@contextmanager
def joined(**how: Any) -> Iterator[Ranks]:
    """Join the processes that the environment names, or those of `how`."""
    distributed.init_process_group("gloo", timeout=_PATIENCE, **how)
    try:
        yield Ranks()
    finally:
        distributed.destroy_process_group()
