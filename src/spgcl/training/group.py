"""Several processes that train one method: each draws its own pools, and gradients are averaged."""

from collections.abc import Callable
from typing import Any, Protocol

from torch import Tensor


class Group(Protocol):
    """The processes of a training.

    Attributes:
        rank: Number of this process; 0 leads, decides and writes.
    """

    rank: int

    def average(self, tensors: list[Tensor]) -> Callable[[], list[Tensor]]:
        """Begin to average tensors over all processes; returns what waits for the means."""
        ...

    def gather(self, tensor: Tensor) -> Tensor:
        """The tensors of all processes, in order of their ranks."""
        ...

    def share(self, value: Any) -> Any:
        """The leader's value."""
        ...
