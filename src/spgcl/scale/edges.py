"""From edges in any order to compressed rows, by two passes: entries are counted per row, then placed."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spgcl.errors import InputError
from spgcl.graph.adjacency import INFINITE_SUM, NO_EDGES, changes
from spgcl.scale.arrays import ArrayWriter, Description, allocate, write_at
from spgcl.scale.ids import Edges

# Bytes of memory for each entry that is sorted.
BYTES_PER_ENTRY = 96
_MOST_BUCKETS = 2**15


@dataclass(frozen=True, eq=False)
class Counted:
    """The result of the first pass.

    Attributes:
        entries: Entries of every row, repeated ones included.
        loops: Edges from a node to itself, which are dropped.
        edges: The other edges.
        weighted: Whether edges have weights.
    """

    entries: NDArray[np.int64]
    loops: int
    edges: int
    weighted: bool


def count(edges: Iterable[Edges], num_nodes: int, *, directed: bool) -> Counted:
    """The first pass over the edges."""
    entries = np.zeros(num_nodes, dtype=np.int64)
    loops = total = 0
    weighted = False
    for sources, targets, weights in edges:
        kept = sources != targets
        entries += np.bincount(sources[kept], minlength=num_nodes)
        if not directed:
            entries += np.bincount(targets[kept], minlength=num_nodes)
        total += int(np.count_nonzero(kept))
        loops += len(kept) - int(np.count_nonzero(kept))
        weighted = weights is not None
    if not total:
        raise InputError(NO_EDGES)
    return Counted(entries, loops, total, weighted)


class Placed:
    """The second pass: entries on disk, ordered by bucket, which is a range of rows that fits in memory.

    An entry is one number: its row in the bucket, its column, and whether it is an edge as given (0) or the
    other direction of one (1).
    """

    def __init__(
        self, scratch: Path, counted: Counted, *, block_rows: int, memory: int, directed: bool
    ) -> None:
        self._counted, self._directed = counted, directed
        self._num_nodes = len(counted.entries)
        self._bounds = _bucket_rows(counted.entries, block_rows, max(1, memory // BYTES_PER_ENTRY))
        sizes = np.add.reduceat(counted.entries, self._bounds[:-1])
        self._starts = np.concatenate([[0], np.cumsum(sizes)])
        self._keys, self._weights = scratch / "keys", scratch / "key-weights"

    def place(self, edges: Iterable[Edges]) -> None:
        """Write every entry into its bucket, in the order of the edges."""
        files: dict[Path, Any] = {self._keys: np.int64}
        files |= {self._weights: np.float32} if self._counted.weighted else {}
        opened = []
        try:
            for path, kind in files.items():
                opened.append(os.open(path, os.O_WRONLY | os.O_CREAT))
                allocate(opened[-1], int(self._starts[-1]) * np.dtype(kind).itemsize, path)
            free = self._starts[:-1].copy()
            for part in edges:
                self._place(part, free, opened)
            assert (free == self._starts[1:]).all()
        finally:
            for descriptor in opened:
                os.close(descriptor)

    def _place(self, part: Edges, free: NDArray[np.int64], opened: list[int]) -> None:
        sources, targets, weights = part
        kept = sources != targets
        ends = [(sources[kept], targets[kept])]
        if not self._directed:
            ends.append(ends[0][::-1])
        for flag, (rows, columns) in enumerate(ends):
            bucket = np.searchsorted(self._bounds[1:], rows, side="right").astype(np.uint16)
            # A stable sort of short integers is a radix sort.
            order = np.argsort(bucket, kind="stable")
            keys = (rows - self._bounds[bucket]) * (2 * self._num_nodes) + 2 * columns + flag
            values = [keys[order], *([] if weights is None else [weights[kept][order]])]
            filled = np.concatenate([[0], np.cumsum(np.bincount(bucket, minlength=len(free)))])
            for index in np.flatnonzero(np.diff(filled)).tolist():
                for descriptor, value in zip(opened, values, strict=True):
                    piece = value[filled[index] : filled[index + 1]]
                    write_at(descriptor, piece, int(free[index]) * piece.itemsize)
            free += np.diff(filled)

    def write(self, folder: Path, block_rows: int) -> tuple[dict[str, Description], list[str]]:
        """Write rows, columns, weights and the position of the diagonal; also what was changed, in words."""
        narrow = np.int32 if self._num_nodes < 2**31 else np.int64
        kinds: dict[str, Any] = {"columns": narrow, "diagonal": narrow}
        kinds |= {"weights": np.float32} if self._counted.weighted else {}
        writers = {name: ArrayWriter(folder / f"{name}.npy", kind) for name, kind in kinds.items()}
        pointers, given = np.zeros(self._num_nodes + 1, dtype=np.int64), 0
        for index, (first, last) in enumerate(pairwise(self._bounds.tolist())):
            rows, columns, weights, listed = self._bucket(index)
            given += listed
            before = np.bincount(rows[columns < rows + first], minlength=last - first)
            ends = np.cumsum(np.bincount(rows, minlength=last - first))
            pointers[first + 1 : last + 1] = pointers[first] + ends
            entries: dict[str, NDArray[Any]] = {"columns": columns}
            entries |= {} if weights is None else {"weights": weights}
            for start in range(0, last - first, block_rows):
                stop = min(start + block_rows, last - first)
                block = slice(int(ends[start - 1]) if start else 0, int(ends[stop - 1]))
                for name, values in entries.items():
                    writers[name].write(values[block])
                writers["diagonal"].write(before[start:stop])
        rows_writer = ArrayWriter(folder / "rows.npy", np.int64)
        rows_writer.write(pointers)
        arrays = {name: writer.close() for name, writer in {**writers, "rows": rows_writer}.items()}
        one_way = 0 if self._directed else int(pointers[-1]) - given
        return arrays, changes(self._counted.loops, self._counted.edges - given, one_way)

    def _bucket(
        self, index: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32] | None, int]:
        """Row in the bucket, column and weight of every entry, sorted; and how many edges were given."""
        first, last = self._starts[index : index + 2].tolist()
        keys = _part_of(self._keys, np.int64, first, last)
        weights = None
        if self._counted.weighted:
            weights = _part_of(self._weights, np.float32, first, last)
            order = np.argsort(keys, kind="stable")
            keys, weights = keys[order], weights[order]
        else:
            keys.sort()
        begins = _begins(keys)
        if weights is not None:
            weights = _summed(weights, begins)
        keys = keys[begins]
        listed = int(np.count_nonzero(keys % 2 == 0))
        keys //= 2
        begins = _begins(keys)
        if weights is not None and len(weights):
            weights = np.maximum.reduceat(weights, np.flatnonzero(begins))
        rows, columns = np.divmod(keys[begins], self._num_nodes)
        return rows, columns, weights, listed


def _bucket_rows(entries: NDArray[np.int64], block_rows: int, most: int) -> NDArray[np.int64]:
    """First row of every bucket, and the number of rows: whole blocks of rows, with `most` entries or one."""
    starts = np.arange(0, len(entries), block_rows)
    sums = np.add.reduceat(entries, starts).tolist()
    most = max(most, sum(sums) // _MOST_BUCKETS + 1)
    bounds, filled = [0], 0
    for start, size in zip(starts.tolist(), sums, strict=True):
        if start and filled + size > most:
            bounds.append(start)
            filled = 0
        filled += size
    return np.array([*bounds, len(entries)])


def _part_of(path: Path, kind: Any, first: int, last: int) -> NDArray[Any]:
    return np.fromfile(path, kind, count=last - first, offset=first * np.dtype(kind).itemsize)


def _begins(keys: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which keys, sorted, are the first of their value."""
    begins = np.ones(len(keys), dtype=np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=begins[1:])
    return begins


def _summed(weights: NDArray[np.float32], begins: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Sums over every run of weights, added up one after the other as in memory."""
    sums = weights[begins]
    if len(sums) < len(weights):
        np.add.at(sums, np.cumsum(begins)[~begins] - 1, weights[~begins])
        if not np.isfinite(sums).all():
            raise InputError(INFINITE_SUM)
    return sums
