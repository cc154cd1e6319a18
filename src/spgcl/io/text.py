"""Delimited text: Arrow reads it fast; the csv module finds the row of an error."""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import compute
from pyarrow import csv as arrow_csv

from spgcl.errors import InputError
from spgcl.io.arrow import to_arrow
from spgcl.io.opening import read_bytes, suffix_of

SAMPLE_ROWS = 100
NAMES_OF_COLUMNS = frozenset(
    ("source", "target", "src", "dst", "from", "to", "weight", "id", "node", "node_id", "label", "class")
)

# A line that begins with # inside a quoted cell is no comment.
_QUOTED_OR_COMMENT = re.compile(rb'(?<![^,;\t\r\n ])("[^"]*(?:""[^"]*)*")|^[ \t]*#[^\n]*', flags=re.MULTILINE)
_LINE = re.compile(rb"\S[^\n]*")
_DECIMAL_COMMA = re.compile(rb'"?[-+]?[\d.]*,\d+(?:[eE][-+]?\d+)?"?')


class TextTable:
    """A text file split into cells by comma, tab, semicolon or whitespace; `#` lines are comments.

    Attributes:
        names: The header's cells, or None if the first row is data.
        columns: One Arrow array of strings per column.
        notes: How the file was understood, in words.
    """

    def __init__(self, path: Path, *, headed: bool | None = None, content: bytes | None = None) -> None:
        """Read `path`, or some lines of it given as `content`.

        Whether the first row is a header is found out if `headed` is None.
        """
        self.path = path
        self.notes: list[str] = []
        self._content, self._delimiter = self._prepare(read_bytes(path) if content is None else content)
        _, first = next(self._rows(), (0, None))
        if first is None:
            raise InputError(f"{path}: holds no rows; is it the right file?")
        columns = self._read_columns(len(first))
        self._headed = self._has_header(first, columns) if headed is None else headed
        self.columns = [column.slice(int(self._headed)) for column in columns]
        self.names = tuple(cell.strip() for cell in first) if self._headed else None
        if not len(self.columns[0]):
            header = ", ".join(repr(cell.strip()) for cell in first[:4])
            raise InputError(
                f"{path}: holds a header ({header}) but no rows below it; if that is data, add a header above"
            )

    def row(self, index: int) -> int:
        """The line of the file, counted from 1, on which data row `index` ends."""
        line, _ = next(islice(self._rows(), index + self._headed, None))
        return line

    def _prepare(self, content: bytes) -> tuple[bytes, str]:
        content = content.removeprefix(b"\xef\xbb\xbf")
        if b"\0" in content[:65536]:
            raise InputError(f"{self.path}: holds binary data, not UTF-8 text; is it of another format?")
        if b"\r" in content and b'"' not in content:
            content = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if b"#" in content:
            count = sum(found[1] is None for found in _QUOTED_OR_COMMENT.finditer(content))
            if count:
                # Blanked, not cut out, so that line numbers stay those of the file.
                content = _QUOTED_OR_COMMENT.sub(lambda found: found[1] or b"", content)
                self.notes.append(f"{self.path.name}: {count:,} lines that begin with # read as comments")
        first = _LINE.search(content)
        for delimiter in ("\t", ",", ";"):
            if first and delimiter.encode() in first.group():
                decimal = delimiter == "," and _has_decimal_commas(first.group())
                return content, ";" if decimal else delimiter
        return _single_spaced(content), " "

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        # Invalid UTF-8 is reported when Arrow has found it.
        text = io.TextIOWrapper(io.BytesIO(self._content), encoding="utf-8", errors="replace", newline="")
        reader = csv.reader(text, delimiter=self._delimiter)
        try:
            for cells in reader:
                if cells:
                    yield reader.line_num, cells
        except csv.Error as error:
            raise InputError(f"{self.path}, row {reader.line_num}: {error}") from None

    def _read_columns(self, width: int) -> list[pa.ChunkedArray]:
        """All rows, a header included, as text: the caller converts what it needs and can name a bad cell."""
        names = [str(index) for index in range(width)]
        # A row has to fit into a block, and rows of features can be long.
        lines = islice(_LINE.finditer(self._content), 2)
        block_size = 16 * max([1 << 18, *(len(line.group()) for line in lines)])
        try:
            table = arrow_csv.read_csv(
                pa.BufferReader(pa.py_buffer(self._content)),
                read_options=arrow_csv.ReadOptions(
                    column_names=names,
                    block_size=block_size,
                    # A process that ends while Arrow still starts its threads is aborted.
                    use_threads=len(self._content) > block_size,
                ),
                parse_options=arrow_csv.ParseOptions(
                    delimiter=self._delimiter, newlines_in_values=b'"' in self._content
                ),
                convert_options=arrow_csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string())),
            )
        except pa.ArrowInvalid as error:
            raise self._explained(error, width) from None
        return list(table.columns)

    def _explained(self, error: Exception, width: int) -> InputError:
        try:
            self._content.decode("utf-8")
        except UnicodeDecodeError as found:
            line = self._content.count(b"\n", 0, found.start) + 1
            byte = self._content[found.start]
            return InputError(
                f"{self.path}, row {line}: byte 0x{byte:02x} is not UTF-8; save the file as UTF-8"
            )
        for line, cells in self._rows():
            if len(cells) != width:
                return InputError(
                    f"{self.path}, row {line}: expected {width} cells, found {len(cells)}; fix the row"
                )
        return InputError(f"{self.path}: {' '.join(str(error).split())}")

    def _has_header(self, first: Sequence[str], columns: Sequence[pa.ChunkedArray]) -> bool:
        """Whether the first row names columns.

        It does if there is text above every column of numbers. If that does not decide, it does in a .csv or
        .tsv or if a name is a usual one, unless a name occurs as an id below. A note tells what was chosen.
        """
        cells = [cell.strip().lower() for cell in first]
        certain = _is_header(cells, [column.slice(1, SAMPLE_ROWS).to_pylist() for column in columns])
        if certain is not None:
            return certain
        usual = not NAMES_OF_COLUMNS.isdisjoint(cells)
        names = to_arrow(np.array([cell for cell in first[:2] if not is_number(cell)], dtype=object))
        ids = (compute.any(compute.is_in(column.slice(1), names)).as_py() for column in columns[:2])
        headed = (usual or suffix_of(self.path) in (".csv", ".tsv")) and not any(ids)
        if not (usual and headed):
            meaning = "column names" if headed else "data, not as column names"
            self.notes.append(f"{self.path.name}: first row ({', '.join(first[:4])}) read as {meaning}")
        return headed


def _has_decimal_commas(line: bytes) -> bool:
    """Whether semicolons separate the cells of a line and every comma is within a number, as in 1;2;0,5."""
    cells = [cell.strip() for cell in line.split(b";")]
    return len(cells) > 1 and all(b"," not in cell or _DECIMAL_COMMA.fullmatch(cell) for cell in cells)


def _single_spaced(content: bytes) -> bytes:
    # Plain replacements run at memory speed; a regular expression takes a second for a million edges.
    content = content.replace(b"\t", b" ")
    while b"  " in content:
        content = content.replace(b"  ", b" ")
    content = content.replace(b"\n ", b"\n").replace(b" \n", b"\n")
    return content.strip(b" ")


def _is_header(cells: Sequence[str], below: Sequence[Sequence[str]]) -> bool | None:
    """Whether the first row names columns; None if it is text and nothing decides."""
    # Tables of pandas have no name above the index, and unnamed columns are called 0, 1, 2 ...
    numbered = len(cells) > 3 and list(cells[1:]) == [str(index) for index in range(len(cells) - 1)]
    if not cells[0] or numbered:
        return True
    if not below[0] and any(map(is_number, cells)):
        return not NAMES_OF_COLUMNS.isdisjoint(cells)
    numeric = [_is_numeric(column) for column in below]
    above = [not is_number(cell) for cell, number in zip(cells, numeric, strict=True) if number]
    if above and all(above):
        return True
    return None if not above or (numeric[0] and above[0]) else False


def _is_numeric(cells: Sequence[str]) -> bool:
    filled = [cell for cell in cells if cell.strip()]
    return bool(filled) and all(map(is_number, filled))


def is_number(cell: str) -> bool:
    """Whether a cell reads as a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True
