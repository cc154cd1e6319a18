"""Arrays computed from a store, block after block; a process that is killed is continued by the next."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from spgcl.errors import InputError
from spgcl.files import locked
from spgcl.scale.arrays import BlockFile, Description, DiskArray, write_block, write_json
from spgcl.scale.store import Store, open_store

# Computes the rows of the block of an index, as an array or a tensor. It may be sent to another process.
Block = Callable[[Store, int], Any]
Task = Callable[[int], int]


class Workers(Protocol):
    """Where blocks are computed.

    Attributes:
        leads: Whether this process decides which; the others only do their part of what it asks for.
    """

    @property
    def leads(self) -> bool:
        """See above."""
        ...

    def wait(self) -> None:
        """Until all processes are here."""
        ...

    def map(self, task: Task, indices: list[int]) -> Iterable[tuple[int, int]]:
        """Every index with what the task returns for it, in any order."""
        ...


@dataclass(frozen=True)
class Here:
    """Blocks are computed in this process, one after the other; or, if another leads, they are there."""

    leads: bool = True

    def wait(self) -> None:
        """There are no others."""

    def map(self, task: Task, indices: list[int]) -> Iterator[tuple[int, int]]:
        """Every index with what the task returns for it."""
        return ((index, task(index)) for index in indices)


@dataclass(frozen=True)
class Derived:
    """An array computed from a store, kept in a folder under a name.

    Attributes:
        key: What it was computed from, besides the store; under another key it is computed again.
        width: Columns.
    """

    folder: Path
    name: str
    key: str
    dtype: str
    width: int

    def compute(self, store: Store, block: Block, workers: Workers) -> DiskArray:
        """The array, after computing the blocks that are missing."""
        path, origin = self.folder / f"{self.name}.npy", f"{store.digest} {self.key}"
        task = _Write(store.folder, store.digest, path, np.dtype(self.dtype), block)
        if not workers.leads:
            for _ in workers.map(task, []):
                pass
        elif _ready(path, origin, store) is None:
            self.folder.mkdir(exist_ok=True)
            with locked(path):
                self._compute(path, origin, store, task, workers)
        else:
            # Others may wait to be told that nothing is missing.
            for _ in workers.map(task, []):
                pass
        workers.wait()
        record = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        return DiskArray(path, Description.of(record))

    def _compute(self, path: Path, origin: str, store: Store, task: Task, workers: Workers) -> None:
        started, finished = path.with_suffix(".origin"), path.with_suffix(".json")
        if finished.exists() or not (started.exists() and started.read_text(encoding="utf-8") == origin):
            for old in (finished, path, path.with_suffix(".journal")):
                old.unlink(missing_ok=True)
        started.write_text(origin, encoding="utf-8")
        file = BlockFile(path, self.dtype, (store.num_nodes, self.width), store.bounds)
        for index, checksum in workers.map(task, file.missing()):
            file.note(index, checksum)
        write_json(finished, {"origin": origin, **file.close().record()})
        started.unlink()


def _ready(path: Path, origin: str, store: Store) -> DiskArray | None:
    """The array if it is complete and of that origin."""
    finished = path.with_suffix(".json")
    if not finished.exists():
        return None
    record = json.loads(finished.read_text(encoding="utf-8"))
    if record.pop("origin") != origin:
        return None
    try:
        array = DiskArray(path, Description.of(record))
        array.verify(store.bounds)
    except InputError:
        # What can be computed again is not worth an error.
        return None
    return array


@dataclass(frozen=True)
class _Write:
    """The task of computing one block and writing it."""

    folder: Path
    digest: str
    path: Path
    dtype: np.dtype[Any]
    block: Block

    def __call__(self, index: int) -> int:
        store = opened(self.folder, self.digest)
        rows = np.asarray(self.block(store, index), dtype=self.dtype)
        return write_block(self.path, store.bounds[index][0], rows)


@lru_cache(maxsize=1)
def opened(folder: Path, digest: str) -> Store:
    """A store, opened once per process."""
    store = open_store(folder)
    if store.digest != digest:
        raise InputError(f"{folder} was replaced in the meantime; start again")
    return store
