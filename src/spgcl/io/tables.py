"""Tables with named columns, read from text or Parquet; errors can name the row of the file."""

import re
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute, feather, parquet

from spgcl.errors import InputError, shown, unknown
from spgcl.graph import Graph
from spgcl.io.arrow import from_arrow, to_arrow
from spgcl.io.draft import positions_of
from spgcl.io.opening import opening, suffix_of
from spgcl.io.text import TextTable, is_number

_FIX_NUMBERS = "fix it, drop its row or column, or encode categories as 0/1 columns"


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of one file or object, not yet converted.

    Attributes:
        path: The file, or what to call a table in memory.
        names: Column names, or "column 1", "column 2" ... if the file has none.
        headed: Whether the names are the file's own.
        row: The row of the file, counted from 1, of a data row counted from 0.
    """

    path: Path
    names: tuple[str, ...]
    columns: list[pa.ChunkedArray]
    headed: bool
    notes: tuple[str, ...]
    row: Callable[[int], int]

    def key(self, name: str | None) -> int:
        """Index of the column of node ids: the named one, else the one called `id`, else the first."""
        if name is not None:
            return self.find(name)
        return self.names.index("id") if self.headed and self.names.count("id") == 1 else 0

    def find(self, name: str) -> int:
        """Index of the column called `name`."""
        if name not in self.names:
            if self.headed and all(map(is_number, self.names)):
                raise InputError(
                    f"{self.path}: no column {name!r}, as its first row holds numbers and no names; "
                    f"use 'column 1' to 'column {len(self.names)}'"
                )
            raise InputError(f"{self.path}: {unknown('column', name, self.names)}")
        if self.names.count(name) > 1:
            raise InputError(f"{self.path}: {self.names.count(name)} columns are called {name!r}; rename one")
        return self.names.index(name)

    def others(self, *used: int | None) -> list[int]:
        """Indices of all other columns."""
        return [column for column in range(len(self.columns)) if column not in used]

    def cell(self, index: int, column: int) -> str:
        """Where a cell is, in words."""
        return f"{self.path}, row {self.row(index)}, column {self.names[column]!r}"


def read_table(source: Any, *names: str | None, named_columns: bool = False) -> Table:
    """Read a table from text, Parquet or Feather, or in memory; text has a header if `named_columns`.

    There also is a header if one of the `names` that the caller will ask for is not the number of a column
    (`column 2`).
    """
    if not isinstance(source, str | PathLike):
        from spgcl.io.frames import table_in_memory

        return table_in_memory(source)
    path = Path(source)
    if suffix_of(path) in (".parquet", ".feather"):
        return _read_columns(path)
    named_columns |= any(name is not None and not re.fullmatch(r"column \d+", name) for name in names)
    return table_of(TextTable(path, headed=named_columns or None), text_row=0)


def table_of(text: TextTable, *, text_row: int) -> Table:
    """The table in lines of text, which follow `text_row` others of their file."""
    numbered = tuple(f"column {number}" for number in range(1, len(text.columns) + 1))
    names, headed = text.names or numbered, text.names is not None
    row = text.row if not text_row else (lambda index: text_row + text.row(index))
    return Table(text.path, names, text.columns, headed, tuple(text.notes), row)


def _read_columns(path: Path) -> Table:
    # An open file: in a path, a folder name such as "year=2024" would add a column.
    kind = "Feather file" if suffix_of(path) == ".feather" else "Parquet file"
    with opening(path, kind), path.open("rb") as file:
        # No threads: a thread that reads ahead and outlives the interpreter aborts the process.
        if kind == "Feather file":
            table = feather.read_table(file, use_threads=False)
        else:
            table = parquet.ParquetFile(file, pre_buffer=False).read(use_threads=False)
        columns = [decoded(column) for column in table.columns]
    if not table.num_rows or not columns:
        raise InputError(f"{path}: holds no rows; is it the right file?")
    return Table(path, tuple(table.column_names), columns, True, (), lambda index: index + 1)


def decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column without dictionary, its text addressed by four bytes."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    other_text = pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type)
    return column.cast(pa.string()) if other_text else column


def read_ids(table: Table, column: int, *, what: str = "id", exact: bool = False) -> NDArray[Any]:
    """A column of node ids (or classes) as int64 if all are plain integers, else as str objects.

    `007` and `1.0` are text: an id is written as it was read. An empty cell is an error: the `what`
    is missing. With `exact`, blanks around text, and empty text, are part of the id.
    """
    return from_arrow(id_column(table, column, what=what, exact=exact))


def id_column(
    table: Table, column: int, *, what: str = "id", exact: bool = False
) -> pa.Array | pa.ChunkedArray:
    """The ids that `read_ids` reads, as int64 or text in Arrow."""
    values = table.columns[column]
    kind = values.type
    if pa.types.is_nested(kind):
        raise InputError(f"{table.path}, column {table.names[column]!r}: {kind} cannot be an {what}")
    missing = compute.is_null(values, nan_is_null=True)
    if pa.types.is_string(kind) and not exact:
        values = compute.utf8_trim_whitespace(values)
        # By its length: Arrow's scalars import pandas, see `spgcl.io.arrow`.
        empty = compute.invert(compute.binary_length(values).cast(pa.bool_()))
        missing = compute.or_kleene(missing, empty)
    rows = np.flatnonzero(from_arrow(missing))
    if len(rows):
        raise InputError(
            f"{table.cell(int(rows[0]), column)}: the {what} is missing; fill it in or drop the row"
        )
    if pa.types.is_string(kind):
        return whole_or_text(values)
    if pa.types.is_integer(kind):
        try:
            return values.cast(pa.int64())
        except pa.ArrowInvalid as error:
            where = f"{table.path}, column {table.names[column]!r}"
            raise InputError(f"{where}: no column of {what}s ({error}); give them as text") from None
    if pa.types.is_floating(kind):
        numbers = from_arrow(values)
        if (np.abs(numbers) < 2**53).all() and (numbers == np.floor(numbers)).all():
            return to_arrow(numbers.astype(np.int64))
    return to_arrow(np.array([str(value) for value in values.to_pylist()], dtype=object))


def whole_or_text(values: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Text as int64 if all of it is integers as Python writes them, else unchanged."""
    try:
        whole = values.cast(pa.int64())
    except pa.ArrowInvalid:
        return values
    # The cast reads 007, -0 and 0x10 as numbers, which would not be written as they were read.
    padded = compute.match_substring_regex(values, "^(-0|0.)")
    return values if compute.any(padded).as_py() else whole


def require_distinct(table: Table, ids: NDArray[Any]) -> None:
    """Refuse a table in which two rows have the same id."""
    listed = ids.tolist()
    if len(set(listed)) == len(listed):
        return
    seen: dict[Any, int] = {}
    for index, node in enumerate(listed):
        if node in seen:
            raise InputError(
                f"{table.path}, row {table.row(index)}: node {shown(node)} again, first in row "
                f"{table.row(seen[node])}; keep one row per node (or is the id another column? --id)"
            )
        seen[node] = index


def node_rows(table: Table, key: int, graph: Graph) -> NDArray[np.int64]:
    """The node of every row of a table by node id, each at most once, as a row of the graph."""
    ids = read_ids(table, key)
    require_distinct(table, ids)
    rows = positions_of(ids, graph.node_ids)
    if (rows < 0).any():
        index = int(np.argmin(rows))
        node = ids.tolist()[index]
        raise InputError(
            f"{table.path}, row {table.row(index)}: node {shown(node)} is not in the graph; drop the row"
        )
    return rows


def read_numbers(table: Table, column: int, *, fix: str = _FIX_NUMBERS) -> NDArray[np.float32]:
    """A column of numbers as float32; `fix` is what to do about a cell that is not a finite number."""
    values = table.columns[column]
    if pa.types.is_string(values.type):
        values = _parsed(values)
    elif pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    elif not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
        raise InputError(
            f"{table.path}, column {table.names[column]!r}: {values.type} is not a number; {fix}"
        )
    with np.errstate(over="ignore"):
        numbers = from_arrow(values.fill_null(0) if values.null_count else values)
        numbers = numbers.astype(np.float32, copy=False)
    valid = np.isfinite(numbers)
    if values.null_count:
        valid &= from_arrow(values.is_valid())
    if not valid.all():
        bad = int(np.argmin(valid))
        cell = table.columns[column][bad].as_py()
        raise InputError(f"{table.cell(bad, column)}: {shown(cell)} is not a finite number; {fix}")
    return np.asarray(numbers)


def _parsed(values: pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Text as float32; if a cell is no number, 0 before the first such cell and NaN from there on."""
    numbers = _as_floats(values)
    if numbers is None:
        values = compute.utf8_trim_whitespace(values)
        numbers = _as_floats(values)
    if numbers is not None:
        return numbers
    count = bisect_left(
        range(len(values)), True, key=lambda index: _as_floats(values.slice(0, index + 1)) is None
    )
    return to_arrow(np.where(np.arange(len(values)) < count, 0, np.nan).astype(np.float32))


def _as_floats(values: pa.ChunkedArray) -> pa.ChunkedArray | None:
    try:
        return values.cast(pa.float32())
    except pa.ArrowInvalid:
        return None


def read_vectors(table: Table, column: int) -> NDArray[np.float32] | None:
    """A column of equally long lists of numbers as a matrix; None for a column that holds no lists."""
    values = table.columns[column]
    kind = values.type
    if not (pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        return None
    # A missing list has the length -1. Fixed sizes need no look at every list.
    fixed = pa.types.is_fixed_size_list(kind) and not values.null_count
    lengths = (
        np.array([kind.list_size]) if fixed else from_arrow(compute.list_value_length(values).fill_null(-1))
    )
    odd = np.flatnonzero((lengths != lengths[0]) | (lengths < 1))
    if len(odd):
        found = max(int(lengths[odd[0]]), 0)
        raise InputError(
            f"{table.cell(int(odd[0]), column)}: a list of {found} numbers; all must be equally long"
        )
    flat = compute.list_flatten(values)
    if flat.null_count or not (pa.types.is_floating(flat.type) or pa.types.is_integer(flat.type)):
        raise InputError(f"{table.path}, column {table.names[column]!r}: its lists must hold numbers only")
    numbers = from_arrow(flat).astype(np.float32, copy=False)
    return np.array(numbers.reshape(len(values), -1))
