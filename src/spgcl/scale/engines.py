"""Where a run is computed: in this process, in those that torchrun started, or on a Ray cluster."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, Protocol

from spgcl.errors import InputError
from spgcl.scale.derived import Here, Workers
from spgcl.scale.ranks import Ranks, joined, launched
from spgcl.training.group import Group

EngineName = Literal["local", "ray"]
# What another process does for a job of the leader; it may be sent to another machine.
Follow = Callable[[Ranks, Any], None]


class Engine(Protocol):
    """Where blocks are computed, and which processes train together.

    Attributes:
        count: Processes that train together.
        workers: Compute blocks.
    """

    count: int
    workers: Workers

    @property
    def group(self) -> Group | None:
        """The processes that train together; None for this one alone."""
        ...

    def begin(self, job: Any, *, prepared: bool) -> None:
        """Give the job to the others: before this process has prepared the graph, and again afterwards."""
        ...

    def end(self) -> None:
        """The job is done."""
        ...

    def tell(self, value: Any) -> None:
        """Give a value to the others, if they follow beyond the training."""
        ...

    def recovered(self, _: Exception) -> bool:
        """Whether the job can begin again after an error, because a process was lost."""
        ...


class Alone:
    """This process does everything."""

    count, group = 1, None

    def __init__(self) -> None:
        self.workers: Workers = Here()

    def begin(self, job: Any, *, prepared: bool) -> None:
        """Nobody else is there."""

    def end(self) -> None:
        """Nobody else is there."""

    def tell(self, value: Any) -> None:
        """Nobody else is there."""

    def recovered(self, _: Exception) -> bool:
        """An error is an error."""
        return False


class Together:
    """The processes that torchrun started: they train together and divide blocks among them."""

    def __init__(self, ranks: Ranks) -> None:
        self.group: Ranks = ranks
        self.workers: Workers = ranks
        self.count = ranks.count

    @property
    def leads(self) -> bool:
        """Whether this is the first of them."""
        return self.group.leads

    def begin(self, job: Any, *, prepared: bool) -> None:
        """All prepare the graph together."""
        if not prepared:
            self.group.share(job)

    def end(self) -> None:
        """The others go on to the next job by themselves."""

    def tell(self, value: Any) -> None:
        """Share a value."""
        self.group.share(value)

    def recovered(self, _: Exception) -> bool:
        """Torchrun ends the other processes."""
        return False

    def dismiss(self) -> None:
        """There are no more jobs."""
        self.group.share(None)


@contextmanager
def engine_of(name: EngineName, workers: int, address: str | None, follow: Follow) -> Iterator[Engine]:
    """The engine that a user asks for, or that of torchrun."""
    if name == "ray":
        from spgcl.scale.cluster import cluster

        with cluster(workers, address, follow) as engine:
            yield engine
        return
    if workers > 1 or address:
        option = f"--workers {workers}" if workers > 1 else f"--address {address}"
        raise InputError(f"{option} goes with --engine ray; on one machine, torchrun starts processes")
    if not launched():
        yield Alone()
        return
    with joined() as ranks:
        together = Together(ranks)
        try:
            yield together
        except RuntimeError as error:
            # The only name that torch gives to a lost connection.
            if "gloo" not in str(error):
                raise
            raise InputError("another process has ended; its message says why") from None
        if together.leads:
            together.dismiss()
