"""Runs in worker processes, each of which writes its line as soon as it has it."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spgcl.errors import InputError
from spgcl.experiments.plan import Run
from spgcl.experiments.results import append, cores, is_current, read_lines


@dataclass(frozen=True)
class Job:
    """A run, the file that its line goes to, and what else the line says."""

    run: Run
    path: Path
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Failure:
    """A run that could not be measured, and why."""

    run: Run
    message: str


def execute(
    jobs: Sequence[Job], *, device: str, workers: int | None, done: Callable[[Job], None]
) -> list[Failure]:
    """Do all jobs, several at once; `done` is called after each.

    Args:
        jobs: What is to do.
        device: Where to compute.
        workers: Processes at once; one per core if None.
        done: Called with every job that is over.
    """
    failures = []
    # Memory is that of a process: such runs have one each, and follow each other.
    alone = [job for job in jobs if job.run.measure == "memory"]
    others = [job for job in jobs if job.run.measure != "memory"]
    for group, count, fresh in ((others, workers or cores(), False), (alone, 1, True)):
        if not group:
            continue
        count = min(count, len(group))
        threads = max(1, cores() // count)
        with _pool(count, fresh=fresh) as pool:
            running = {pool.submit(_do, job, device, threads, count): job for job in group}
            for future in as_completed(running):
                job = running[future]
                if message := _outcome(future):
                    failures.append(Failure(job.run, message))
                done(job)
    return failures


@contextmanager
def _pool(workers: int, *, fresh: bool) -> Iterator[ProcessPoolExecutor]:
    """Workers that end with this process, whatever ends it."""
    pool = ProcessPoolExecutor(
        workers,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_end_with_parent,
        max_tasks_per_child=1 if fresh else None,
    )
    try:
        yield pool
        pool.shutdown()
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():
            child.terminate()
        raise


def _outcome(future: Future[str]) -> str:
    try:
        return future.result()
    except BrokenProcessPool:
        raise InputError(
            "a worker was ended by the system, probably for its memory; "
            "what is finished is kept: start again with fewer --workers"
        ) from None


def _do(job: Job, device: str, threads: int, workers: int) -> str:
    """Measure a run and write its line, unless another process just did; a message if it cannot be."""
    from spgcl.experiments.measures import measured, worker_device

    try:
        if any(
            line.get("digest") == job.run.digest and is_current(line, job.run)
            for line in read_lines(job.path)
        ):
            return ""
        line = measured(job.run, worker_device(device, threads))
        # Where several runs share the machine, their times mean little.
        append(job.path, {**line, "workers": workers, **job.more})
    except (InputError, RuntimeError) as error:
        return str(error).splitlines()[0]
    return ""


def _end_with_parent() -> None:
    """End this worker when the process that started it is gone, even if it was killed, and by that alone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
