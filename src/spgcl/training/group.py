"""Several processes that train one method: each draws its own pools, and gradients are averaged."""

from typing import Any, Protocol

from torch import Tensor


class Group(Protocol):
    """The processes of a training.

    Attributes:
        rank: Number of this process; 0 leads, decides and writes.
    """

    rank: int

    def average(self, tensors: list[Tensor]) -> None:
        """Replace tensors by their mean over all processes."""
        ...

    def gather(self, tensor: Tensor) -> Tensor:
        """The tensors of all processes, in order of their ranks."""
        ...

    def share(self, value: Any) -> Any:
        """The leader's value."""
        ...
