"""Arrays computed from a store, block after block; a process that is killed is continued by the next."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from spgcl.errors import InputError
from spgcl.files import locked
from spgcl.scale.arrays import BlockFile, Description, DiskArray, write_block, write_json
from spgcl.scale.store import Store, open_store

# Computes the rows of the block of an index. It may be sent to another process.
Block = Callable[[Store, int], NDArray[Any]]
Task = Callable[[int], int]


class Workers(Protocol):
    """Where blocks are computed."""

    def map(self, task: Task, indices: list[int]) -> Iterable[tuple[int, int]]:
        """Every index with what the task returns for it, in any order."""
        ...


class Here:
    """Blocks are computed in this process, one after the other."""

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
        self.folder.mkdir(exist_ok=True)
        path, origin = self.folder / f"{self.name}.npy", f"{store.digest} {self.key}"
        with locked(path):
            array = self._complete(path, origin, store)
            if array is not None:
                return array
            (started := path.with_suffix(".origin")).write_text(origin, encoding="utf-8")
            file = BlockFile(path, self.dtype, (store.num_nodes, self.width), store.bounds)
            task = _Write(store.folder, store.digest, path, np.dtype(self.dtype), block)
            for index, checksum in workers.map(task, file.missing()):
                file.note(index, checksum)
            described = file.close()
            write_json(path.with_suffix(".json"), {"origin": origin, **described.record()})
            started.unlink()
        return DiskArray(path, described)

    def _complete(self, path: Path, origin: str, store: Store) -> DiskArray | None:
        """The array if it is complete; removes one that is of another origin."""
        finished, started = path.with_suffix(".json"), path.with_suffix(".origin")
        if finished.exists():
            record = json.loads(finished.read_text(encoding="utf-8"))
            if record.pop("origin") == origin:
                try:
                    array = DiskArray(path, Description.of(record))
                    array.verify(store.bounds)
                    return array
                except InputError:
                    # What can be computed again is not worth an error.
                    pass
        elif started.exists() and started.read_text(encoding="utf-8") == origin:
            return None
        for old in (finished, path, path.with_suffix(".journal")):
            old.unlink(missing_ok=True)
        return None


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
        rows = self.block(store, index).astype(self.dtype, copy=False)
        return write_block(self.path, store.bounds[index][0], rows)


@lru_cache(maxsize=1)
def opened(folder: Path, digest: str) -> Store:
    """A store, opened once per process."""
    store = open_store(folder)
    if store.digest != digest:
        raise InputError(f"{folder} was replaced in the meantime; start again")
    return store
