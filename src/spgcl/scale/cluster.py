"""Ray: blocks are its tasks, the processes that train together are its actors; lost ones begin again."""

import logging
import os
import socket
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

from spgcl.errors import InputError, note
from spgcl.scale.derived import Task, Workers
from spgcl.scale.ranks import joined
from spgcl.training.group import Group

# How often a block, or a training, begins again after its process was lost.
RETRIES = 3


class RayTasks:
    """Blocks as tasks of a cluster whose machines see the same files."""

    leads = True

    def __init__(self, ray: Any, count: int) -> None:
        self._ray, self._count = ray, count
        self._run = ray.remote(_run).options(max_retries=RETRIES, num_cpus=1)

    def map(self, task: Task, indices: list[int]) -> Iterator[tuple[int, int]]:
        """Every index with what the task returns for it, as they come."""
        shared, waiting, rest = self._ray.put(task), [], iter(indices)
        for index in rest:
            waiting.append(self._run.remote(shared, index))
            if len(waiting) >= 2 * self._count:
                yield from self._finished(waiting)
        while waiting:
            yield from self._finished(waiting)

    def _finished(self, waiting: list[Any]) -> Iterator[tuple[int, int]]:
        done, rest = self._ray.wait(waiting)
        waiting[:] = rest
        for one in done:
            try:
                yield self._ray.get(one)
            except self._ray.exceptions.RayTaskError as error:
                raise error.as_instanceof_cause() from None

    def wait(self) -> None:
        """Tasks end before their results are read."""


def _run(task: Task, index: int) -> tuple[int, int]:
    return index, task(index)


class Follower:
    """A process that trains together with the leader."""

    def ready(self) -> bool:
        """It has been started."""
        return True

    def follow(self, follow: Any, job: Any, where: str, rank: int, count: int) -> None:
        """Do what the leader does, for one job."""
        with joined(init_method=where, rank=rank, world_size=count) as ranks:
            follow(ranks, job)


class RayEngine:
    """The leader is this process; the others are actors."""

    def __init__(self, ray: Any, count: int, follow: Any) -> None:
        self._ray, self._follow, self.count = ray, follow, count
        self.workers: Workers = RayTasks(ray, count)
        self.group: Group | None = None
        self._actors: list[Any] = []
        self._running: list[Any] = []
        self._stack = ExitStack()
        self._lost = 0

    def begin(self, job: Any, *, prepared: bool) -> None:
        """Start the others when what they read is there."""
        if not prepared or self.count == 1:
            return
        ray = self._ray
        actor = ray.remote(Follower).options(num_cpus=1, max_restarts=0)
        self._actors = [actor.remote() for _ in range(self.count - 1)]
        ray.get([one.ready.remote() for one in self._actors])
        where = f"tcp://{ray.util.get_node_ip_address()}:{_free_port()}"
        self._running = [
            one.follow.remote(self._follow, job, where, rank, self.count)
            for rank, one in enumerate(self._actors, 1)
        ]
        how = {"init_method": where, "rank": 0, "world_size": self.count}
        self.group = self._stack.enter_context(joined(**how))

    def end(self) -> None:
        """Let the others go."""
        self._stack.close()
        self.group = None
        for one in self._actors:
            self._ray.kill(one)
        self._actors = []

    def tell(self, value: Any) -> None:
        """The others have gone after training."""

    def recovered(self, error: Exception) -> bool:
        """A lost process ends the messages of the others, which is an error of torch."""
        if not isinstance(error, RuntimeError) or self.group is None or self._lost == RETRIES:
            return False
        self._raise_input_error()
        self._lost += 1
        reason = " ".join(str(error).split())[:80]
        note(f"a process was lost ({reason}); training goes on from the last checkpoint")
        self.end()
        return True

    def _raise_input_error(self) -> None:
        """If a process has ended with an error that a user can fix, that is the one to see."""
        done, _ = self._ray.wait(self._running, num_returns=len(self._running), timeout=1)
        for one in done:
            try:
                self._ray.get(one)
            except self._ray.exceptions.RayTaskError as error:
                if isinstance(error.cause, InputError):
                    raise error.cause from None
            except self._ray.exceptions.RayError:
                # A lost process.
                pass


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("", 0))
        return int(found.getsockname()[1])


@contextmanager
def cluster(count: int, address: str | None, follow: Any) -> Iterator[RayEngine]:
    """Connect to a cluster, or start one on this machine."""
    try:
        import ray
    except ImportError:
        raise InputError("--engine ray needs Ray; install it: pip install 'spgcl[scale]'") from None
    here: dict[str, Any] = {} if address else {"num_cpus": max(count, 1), "include_dashboard": False}
    paths = os.pathsep.join(dict.fromkeys([str(Path(__file__).parents[2]), *filter(None, sys.path)]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ray.init(
                address=address or "local",
                log_to_driver=False,
                logging_level=logging.ERROR,
                runtime_env={"env_vars": {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}},
                **here,
            )
        except (ConnectionError, ValueError) as error:
            raise InputError(
                f"--address {address}: no Ray cluster answers ({' '.join(str(error).split())[:80]})"
            ) from None
    engine = RayEngine(ray, count, follow)
    try:
        # Ray prints on stdout what happens to processes.
        with redirect_stdout(sys.stderr):
            yield engine
    finally:
        engine.end()
        ray.shutdown()
