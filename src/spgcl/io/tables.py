"""Tables with named columns, read from text or Parquet; errors can name the row of the file."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute, parquet

from spgcl.errors import InputError, unknown
from spgcl.io.arrow import numbers_from_arrow, text_from_arrow, truths_from_arrow
from spgcl.io.opening import opening, require_file, suffix_of
from spgcl.io.text import TextTable, is_number

MISSING_WORDS = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of one file, not yet converted.

    Attributes:
        names: Column names, or "column 1", "column 2" ... where the file has none.
        headed: Whether the names are the file's own.
        row: The row of the file, for people, of a data row counted from 0.
    """

    path: Path
    names: tuple[str, ...]
    columns: list[pa.ChunkedArray]
    headed: bool
    notes: tuple[str, ...]
    row: Callable[[int], int]

    def find(self, name: str) -> int:
        """Position of the column called `name`."""
        if name not in self.names:
            if self.headed and all(map(is_number, self.names)):
                raise InputError(
                    f"{self.path}: no column {name!r}, as its first row holds numbers and no names; "
                    f"say 'column 1' to 'column {len(self.names)}'"
                )
            raise InputError(f"{self.path}: {unknown('column', name, self.names)}")
        if self.names.count(name) > 1:
            raise InputError(f"{self.path}: {self.names.count(name)} columns are called {name!r}; rename one")
        return self.names.index(name)

    def place(self, index: int, column: int) -> str:
        """Where a cell is, in words."""
        return f"{self.path}, row {self.row(index)}, column {self.names[column]!r}"


def need_header(*names: str | None) -> bool:
    """Whether one of the names is a table's own, not the number of a column (`column 2`)."""
    return any(name is not None and not re.fullmatch(r"column \d+", name) for name in names)


def read_table(path: Path, *, named_columns: bool = False) -> Table:
    """Read a table; `named_columns` says that the caller asks for columns by name, so there is a header."""
    if suffix_of(path) == ".parquet":
        return _read_parquet(path)
    text = TextTable(path, headed=True if named_columns else None)
    names = text.names or tuple(f"column {place + 1}" for place in range(len(text.columns)))
    return Table(path, names, text.columns, text.names is not None, tuple(text.notes), text.row)


def _read_parquet(path: Path) -> Table:
    require_file(path)
    with opening(path, "Parquet file"):
        # A plain file: a folder name such as "year=2024" on the way must not add a column.
        with path.open("rb") as file:
            # Without threads, those that read ahead included: one that outlives the interpreter would abort
            # the process at its end.
            table = parquet.ParquetFile(file, pre_buffer=False).read(use_threads=False)
        columns = [_decoded(column) for column in table.columns]
    if not table.num_rows or not columns:
        raise InputError(f"{path}: holds no rows; is it the right file?")
    return Table(path, tuple(table.column_names), columns, True, (), lambda index: index + 1)


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.cast(pa.string()) if pa.types.is_large_string(column.type) else column


def read_ids(table: Table, column: int, *, what: str = "id", exact: bool = False) -> NDArray[Any]:
    """A column of node ids (or classes) as int64 where all are plain integers, else as text.

    `007` and `1.0` are text: an id is given back as it was written. Empty cells are an error.

    Args:
        table: Where from.
        column: Which column.
        what: What an empty cell lacks, for the error.
        exact: Whether blanks around text, and empty text, are part of the id.
    """
    ids = id_column(table, column, what=what, exact=exact)
    return text_from_arrow(ids) if isinstance(ids, pa.ChunkedArray) else ids


def id_column(
    table: Table, column: int, *, what: str = "id", exact: bool = False
) -> NDArray[Any] | pa.ChunkedArray:
    """The same as `read_ids`, with text left in Arrow's hands."""
    values = table.columns[column]
    if values.null_count:
        raise _missing(table, column, _first(compute.is_null(values)), what)
    if pa.types.is_string(values.type):
        return _whole_or_text(values) if exact else _text_ids(table, column, what)
    if pa.types.is_integer(values.type):
        with opening(table.path, f"column of {what}s"):
            return numbers_from_arrow(values.cast(pa.int64()))
    if pa.types.is_nested(values.type):
        raise InputError(f"{table.path}, column {table.names[column]!r}: {values.type} cannot be an {what}")
    if pa.types.is_floating(values.type):
        numbers = numbers_from_arrow(values)
        if np.isnan(numbers).any():
            raise _missing(table, column, int(np.argmax(np.isnan(numbers))), what)
        if (np.abs(numbers) < 2**53).all() and (numbers == np.floor(numbers)).all():
            return np.asarray(numbers.astype(np.int64))
    return np.array([str(value) for value in values.to_pylist()], dtype=object)


def _text_ids(table: Table, column: int, what: str) -> NDArray[Any] | pa.ChunkedArray:
    values = compute.utf8_trim_whitespace(table.columns[column])
    filled = numbers_from_arrow(compute.binary_length(values)) > 0
    if not filled.all():
        raise _missing(table, column, int(np.argmin(filled)), what)
    return _whole_or_text(values)


def _whole_or_text(values: pa.ChunkedArray) -> NDArray[Any] | pa.ChunkedArray:
    try:
        whole = values.cast(pa.int64())
    except pa.ArrowInvalid:
        return values
    # The cast reads 007, -0 and 0x10 as numbers, which would not be given back as written.
    longer = numbers_from_arrow(compute.binary_length(values)) > 1
    padded = truths_from_arrow(compute.starts_with(values, "0")) & longer
    padded |= truths_from_arrow(compute.starts_with(values, "-0"))
    return values if padded.any() else numbers_from_arrow(whole)


def read_numbers(table: Table, column: int) -> NDArray[np.float32]:
    """A column of numbers as float32, or an error that names the first cell that is not one."""
    values = table.columns[column]
    if pa.types.is_string(values.type):
        values = _parsed(table, column)
    elif pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    elif not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
        raise InputError(
            f"{table.path}, column {table.names[column]!r}: {values.type} is not a number; "
            f"encode it as numbers or drop the column"
        )
    if values.null_count:
        raise _bad_cell(table, column, _first(compute.is_null(values)), "")
    with np.errstate(over="ignore"):
        numbers = numbers_from_arrow(values).astype(np.float32, copy=False)
    finite = np.isfinite(numbers)
    if not finite.all():
        bad = int(np.argmin(finite))
        raise _bad_cell(table, column, bad, str(table.columns[column][bad]))
    return np.asarray(numbers)


def _parsed(table: Table, column: int) -> pa.ChunkedArray:
    values = table.columns[column]
    try:
        return values.cast(pa.float32())
    except pa.ArrowInvalid:
        values = compute.utf8_trim_whitespace(values)
    try:
        return values.cast(pa.float32())
    except pa.ArrowInvalid:
        bad = _first_unparsed(values)
        raise _bad_cell(table, column, bad, values[bad].as_py()) from None


def _first_unparsed(values: pa.ChunkedArray) -> int:
    """Index of the first cell that is no number, by halving."""
    start, length = 0, len(values)
    while length > 1:
        half = length // 2
        try:
            values.slice(start, half).cast(pa.float32())
        except pa.ArrowInvalid:
            length = half
        else:
            start, length = start + half, length - half
    return start


def _first(mask: pa.ChunkedArray) -> int:
    return int(np.argmax(truths_from_arrow(mask)))


def _missing(table: Table, column: int, index: int, what: str) -> InputError:
    return InputError(f"{table.place(index, column)}: the {what} is missing; fill it in or drop the row")


def _bad_cell(table: Table, column: int, index: int, cell: str) -> InputError:
    place = table.place(index, column)
    if cell.strip().lower() in MISSING_WORDS:
        return InputError(f"{place}: missing value {cell!r}; fill it in, or drop the row or the column")
    if cell.strip().lower().lstrip("+-")[:1].isdigit() or "inf" in cell.lower():
        return InputError(f"{place}: {cell!r} is not a finite number; mend the cell")
    return InputError(
        f"{place}: {cell!r} is not a number; encode categories as 0/1 columns or drop the column"
    )


def read_vectors(table: Table, column: int) -> NDArray[np.float32] | None:
    """A column of equally long lists of numbers as a matrix; None for a column that holds no lists."""
    values = table.columns[column]
    kind = values.type
    if not (pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        return None
    lengths = _lengths(values)
    odd = np.flatnonzero((lengths != lengths[0]) | (lengths < 1))
    if len(odd):
        found = max(int(lengths[odd[0]]), 0)
        raise InputError(
            f"{table.place(int(odd[0]), column)}: a list of {found} numbers; all must be equally long"
        )
    flat = compute.list_flatten(values)
    if flat.null_count or not (pa.types.is_floating(flat.type) or pa.types.is_integer(flat.type)):
        raise InputError(f"{table.path}, column {table.names[column]!r}: its lists must hold numbers only")
    numbers = numbers_from_arrow(flat).astype(np.float32, copy=False)
    return np.array(numbers.reshape(len(values), -1))


def _lengths(values: pa.ChunkedArray) -> NDArray[Any]:
    """How long the lists of a column are; -1 where there is none."""
    if pa.types.is_fixed_size_list(values.type) and not values.null_count:
        return np.full(len(values), values.type.list_size)
    lengths = compute.list_value_length(values)
    return numbers_from_arrow(lengths.fill_null(-1) if lengths.null_count else lengths)
