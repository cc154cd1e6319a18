"""Arrays on disk: NumPy files written in blocks, each with a checksum, and read through memory maps."""

import io
import json
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spgcl.errors import InputError
from spgcl.files import replacing, unwritable

# Bytes of the header of a NumPy file with one or two dimensions.
_HEADER = 128
_MOST_PER_WRITE = 2**30


@dataclass(frozen=True)
class Description:
    """What a file of an array must hold.

    Attributes:
        checksums: CRC-32 of every block.
    """

    dtype: str
    shape: tuple[int, ...]
    checksums: tuple[int, ...]

    def record(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    @classmethod
    def of(cls, record: dict[str, Any]) -> "Description":
        """From JSON."""
        return cls(str(record["dtype"]), tuple(record["shape"]), tuple(record["checksums"]))

    @property
    def bytes(self) -> int:
        """Size of the content."""
        return int(np.dtype(self.dtype).itemsize * np.prod(self.shape, dtype=np.int64))


@dataclass(frozen=True)
class DiskArray:
    """An array of a store."""

    path: Path
    described: Description

    def __post_init__(self) -> None:
        expected = _HEADER + self.described.bytes
        found = self.path.stat().st_size if self.path.is_file() else -1
        if found != expected:
            state = "is missing" if found < 0 else f"has {found:,} bytes instead of {expected:,}"
            raise InputError(f"{self.path} {state}; ingest the graph again")

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process maps the file itself.
        return DiskArray, (self.path, self.described)

    @property
    def writable(self) -> NDArray[Any]:
        """The same, but writable as tensors have to be; what is written stays in memory."""
        described = self.described
        return np.memmap(self.path, described.dtype, "c", _HEADER, described.shape)

    @property
    def mapped(self) -> NDArray[Any]:
        """Its rows, read from disk when they are used; what was read is forgotten with this map."""
        described = self.described
        return np.memmap(self.path, described.dtype, "r", _HEADER, described.shape)

    def verify(self, bounds: Iterable[tuple[int, int]]) -> None:
        """Compare every block, from one row to another, with its checksum."""
        rows = self.mapped
        for (start, stop), checksum in zip(bounds, self.described.checksums, strict=True):
            if checksum_of(rows[start:stop]) != checksum:
                where = f"{self.path}: rows {start:,} to {stop:,}"
                raise InputError(f"{where} are not what was written; ingest the graph again")


def checksum_of(rows: NDArray[Any]) -> int:
    """CRC-32 of the bytes of an array."""
    return zlib.crc32(np.ascontiguousarray(rows).reshape(-1).view(np.uint8).data)


class ArrayWriter:
    """Writes an array block after block; its length may be open until the end."""

    def __init__(self, path: Path, dtype: Any, width: int | None = None) -> None:
        self._path, self._dtype, self._width = path, np.dtype(dtype), width
        self._checksums: list[int] = []
        self._length = 0
        self._file = path.open("wb")
        self._file.seek(_HEADER)

    def write(self, block: NDArray[Any]) -> None:
        """Append a block."""
        content = np.ascontiguousarray(block, dtype=self._dtype)
        self._checksums.append(checksum_of(content))
        self._length += len(content)
        try:
            self._file.write(content.reshape(-1).view(np.uint8).data)
        except OSError as error:
            raise unwritable(self._path, error) from None

    def close(self) -> Description:
        """Finish the file and describe it."""
        shape = (self._length,) if self._width is None else (self._length, self._width)
        try:
            self._file.seek(0)
            self._file.write(_header(self._dtype, shape))
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
        except OSError as error:
            raise unwritable(self._path, error) from None
        return Description(self._dtype.str, shape, tuple(self._checksums))


def _header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    buffer = io.BytesIO()
    described = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, described)
    assert len(buffer.getvalue()) == _HEADER
    return buffer.getvalue()


class BlockFile:
    """An array of known shape whose blocks are written in any order, by any process, and survive a kill.

    A line of its journal says that a block is there; one that does not have the checksum is written again.
    """

    def __init__(self, path: Path, dtype: Any, shape: tuple[int, ...], bounds: Sequence[tuple[int, int]]):
        self.path, self.bounds = path, bounds
        self._dtype, self._shape = np.dtype(dtype), shape
        self._journal = path.with_suffix(".journal")
        self._row_bytes = int(self._dtype.itemsize * np.prod(shape[1:], dtype=np.int64))
        self._checksums = self._recovered()
        if not self._checksums:
            self._allocate()

    def missing(self) -> list[int]:
        """Blocks that are yet to be written."""
        return [index for index in range(len(self.bounds)) if index not in self._checksums]

    def note(self, index: int, checksum: int) -> None:
        """Record that a block is written, with the checksum that `write_block` returned."""
        self._checksums[index] = checksum
        with self._journal.open("a", encoding="ascii") as file:
            file.write(f"{index} {checksum}\n")

    def close(self) -> Description:
        """Describe the complete array."""
        with self.path.open("rb+") as file:
            os.fsync(file.fileno())
        self._journal.unlink(missing_ok=True)
        checksums = tuple(self._checksums[index] for index in range(len(self.bounds)))
        return Description(self._dtype.str, self._shape, checksums)

    def _allocate(self) -> None:
        """Make room now: a disk that fills up later would end a process that writes to a memory map."""
        self._journal.unlink(missing_ok=True)
        with self.path.open("wb") as file:
            header = _header(self._dtype, self._shape)
            file.write(header)
            file.flush()
            allocate(file.fileno(), len(header) + self._row_bytes * self._shape[0], self.path)

    def _recovered(self) -> dict[int, int]:
        """The blocks that an earlier process wrote, by the journal, and whose bytes are still right."""
        if not self._journal.exists() or not self.path.exists():
            return {}
        if self.path.stat().st_size != _HEADER + self._row_bytes * self._shape[0]:
            return {}
        rows = np.memmap(self.path, self._dtype, "r", _HEADER, self._shape)
        found = {}
        for line in self._journal.read_text(encoding="ascii").splitlines():
            parts = line.split()
            if len(parts) == 2 and all(map(str.isdecimal, parts)) and int(parts[0]) < len(self.bounds):
                start, stop = self.bounds[int(parts[0])]
                if checksum_of(rows[start:stop]) == int(parts[1]):
                    found[int(parts[0])] = int(parts[1])
        return found


def write_block(path: Path, start: int, rows: NDArray[Any]) -> int:
    """Write the rows of a block into a `BlockFile`; returns their checksum."""
    content = np.ascontiguousarray(rows)
    descriptor = os.open(path, os.O_WRONLY)
    try:
        write_at(descriptor, content, _HEADER + start * content[:1].nbytes)
    except OSError as error:
        raise unwritable(path, error) from None
    finally:
        os.close(descriptor)
    return checksum_of(content)


def allocate(descriptor: int, size: int, path: Path) -> None:
    """Reserve a file's bytes on disk, or fail with its name."""
    try:
        os.posix_fallocate(descriptor, 0, size)
    except AttributeError:
        # macOS and Windows do not have it.
        os.truncate(descriptor, size)
    except OSError as error:
        raise unwritable(path, error) from None


def write_at(descriptor: int, content: NDArray[Any], offset: int) -> None:
    """Write an array at a position of an open file."""
    rest = memoryview(content.reshape(-1).view(np.uint8).data)
    while len(rest):
        written = os.pwrite(descriptor, rest[:_MOST_PER_WRITE], offset)
        rest, offset = rest[written:], offset + written


def row_bounds(num_rows: int, block_rows: int) -> list[tuple[int, int]]:
    """First and last row of every block."""
    return [(start, min(start + block_rows, num_rows)) for start in range(0, num_rows, block_rows)]


def regrouped(parts: Iterable[NDArray[Any]], block_rows: int) -> Iterator[NDArray[Any]]:
    """The same rows in blocks of equal size, the last one excepted."""
    held: list[NDArray[Any]] = []
    count = 0
    for part in parts:
        while count + len(part) >= block_rows:
            cut = block_rows - count
            yield np.concatenate([*held, part[:cut]])
            part, held, count = part[cut:], [], 0
        held.append(part)
        count += len(part)
    if count:
        yield np.concatenate(held)


def write_json(path: Path, record: dict[str, Any]) -> None:
    """Write a record, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
