"""Tables in parts: some rows at a time, so that a file may be larger than memory."""

import gzip
import operator
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO

import pyarrow as pa
from pyarrow import parquet

from spgcl.errors import InputError
from spgcl.io.opening import opening, suffix_of
from spgcl.io.tables import Table, decoded, table_of
from spgcl.io.text import TextTable

# About what a cell of text takes in a file.
_BYTES_PER_CELL = 8
_ONLY_COMMENTS = re.compile(rb"(?:[ \t]*(?:#[^\n]*)?(?:\n|$))*")


def table_chunks(path: Path, *names: str | None, cells: int) -> Iterator[Table]:
    """The table of a text or Parquet file, about `cells` cells at a time.

    As by `spgcl.io.tables.read_table`, there is a header if one of the `names` is not the number of a column.
    All parts have the names of the first; notes are those of the first too.
    """
    if suffix_of(path) == ".parquet":
        yield from _parquet_chunks(path, cells)
        return
    named = any(name is not None and not re.fullmatch(r"column \d+", name) for name in names)
    first: Table | None = None
    for before, content in _line_chunks(path, max(1, int(cells * _BYTES_PER_CELL))):
        if first is not None and _ONLY_COMMENTS.fullmatch(content):
            continue
        headed = (named or None) if first is None else False
        table = table_of(TextTable(path, headed=headed, content=content), text_row=before)
        if first is not None:
            if len(table.columns) != len(first.columns):
                expected = f"expected {len(first.columns)} cells, found {len(table.columns)}"
                raise InputError(f"{path}, row {table.row(0)}: {expected}; fix the row")
            table = replace(table, names=first.names, headed=first.headed, notes=())
        first = first or table
        yield table


def _parquet_chunks(path: Path, cells: int) -> Iterator[Table]:
    # An open file: in a path, a folder name such as "year=2024" would add a column.
    with opening(path, "Parquet file"), path.open("rb") as opened:
        file = parquet.ParquetFile(opened, pre_buffer=False)
        width = max(1, file.metadata.num_columns)
        if not file.metadata.num_rows or not file.metadata.num_columns:
            raise InputError(f"{path}: holds no rows; is it the right file?")
        before = 0
        for batch in file.iter_batches(max(1, cells // width), use_threads=False):
            columns = [decoded(pa.chunked_array([column])) for column in batch.columns]
            row = partial(operator.add, before + 1)
            yield Table(path, tuple(batch.schema.names), columns, True, (), row)
            before += len(batch)


def _line_chunks(path: Path, size: int) -> Iterator[tuple[int, bytes]]:
    """Whole lines, about `size` bytes of them, and how many lines came before."""
    with opening(path, "text file"), _unpacked(path) as file:
        before, rest = 0, b""
        while read := file.read(size):
            end = _last_line_end(content := rest + read)
            if end:
                yield before, content[:end]
                before += content.count(b"\n", 0, end)
            rest = content[end:]
        if rest or not before:
            yield before, rest


def _unpacked(path: Path) -> "IO[bytes]":
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return gzip.open(path, "rb") if packed else path.open("rb")  # type: ignore[return-value]


def _last_line_end(content: bytes) -> int:
    """Behind the last line break that is not within quotes."""
    end = content.rfind(b"\n") + 1
    if b'"' in content:
        while end and content.count(b'"', 0, end) % 2:
            end = content.rfind(b"\n", 0, end - 1) + 1
    return end
