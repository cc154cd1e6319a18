"""Delimited text, fast when it is right and explained by row when it is wrong."""

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
from spgcl.io.arrow import text_to_arrow
from spgcl.io.opening import read_bytes, suffix_of

SAMPLE_ROWS = 100
NAMES_OF_COLUMNS = frozenset(
    ("source", "target", "src", "dst", "from", "to", "weight", "id", "node", "node_id", "label", "class")
)

# A quoted cell may hold a line that begins with #, which is no comment.
_QUOTED_OR_COMMENT = re.compile(rb'(?<![^,;\t\r\n ])("[^"]*(?:""[^"]*)*")|^[ \t]*#[^\n]*', flags=re.MULTILINE)

_DECIMAL_COMMA = re.compile(rb'"?[-+]?[\d.]*,\d+(?:[eE][-+]?\d+)?"?')


class TextTable:
    """A text file cut into cells: comma, tab, semicolon or whitespace separated, `#` lines left out.

    Attributes:
        names: The header's cells, or None when the first row is data.
        columns: One array of strings a column.
        notes: What a reader should know about how the file was understood.
    """

    def __init__(self, path: Path, *, headed: bool | None = None) -> None:
        """Read `path`; `headed` says whether the first row names columns (None: look)."""
        self.path = path
        self.notes: list[str] = []
        self._content, self._delimiter = self._prepare(read_bytes(path))
        sample = [cells for _, cells in islice(self._rows(), SAMPLE_ROWS + 1)]
        if not sample:
            raise InputError(f"{path}: holds no rows; is it the right file?")
        self._width = len(sample[0])
        self._headed = _is_header(sample[0], sample[1:]) if headed is None else headed
        if self._headed is None:
            self._settle_header(sample[0])
        else:
            self.columns = self._columns()
        self.names = tuple(cell.strip() for cell in sample[0]) if self._headed else None

    def row(self, index: int) -> int:
        """The line of the file, counted from 1, on which data row `index` ends."""
        line, _ = next(islice(self._rows(), index + bool(self._headed), None))
        return line

    def _prepare(self, content: bytes) -> tuple[bytes, str]:
        content = content.removeprefix(b"\xef\xbb\xbf")
        if b"\0" in content[:65536]:
            raise InputError(f"{self.path}: holds binary data, not UTF-8 text; is it what its name says?")
        if b"\r" in content and b'"' not in content:
            content = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if b"#" in content:
            count = sum(found[1] is None for found in _QUOTED_OR_COMMENT.finditer(content))
            if count:
                # Comments are blanked, not cut out, so that line numbers stay those of the file.
                content = _QUOTED_OR_COMMENT.sub(lambda found: found[1] or b"", content)
                self.notes.append(f"{self.path.name}: {count:,} lines that begin with # read as comments")
        first = re.search(rb"\S[^\n]*", content)
        for delimiter in ("\t", ",", ";"):
            if first and delimiter.encode() in first.group():
                decimal = delimiter == "," and _has_decimal_commas(first.group())
                return content, ";" if decimal else delimiter
        return _single_spaced(content), " "

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        text = io.TextIOWrapper(io.BytesIO(self._content), encoding="utf-8", newline="")
        reader = csv.reader(text, delimiter=self._delimiter)
        try:
            for cells in reader:
                if cells:
                    yield reader.line_num, cells
        except UnicodeDecodeError:
            raise self._not_utf8() from None
        except csv.Error as error:
            raise InputError(f"{self.path}, row {reader.line_num}: {error}") from None

    def _columns(self) -> list[pa.ChunkedArray]:
        names = [str(place) for place in range(self._width)]
        start = self._end_of_header() if self._headed else 0
        first = re.compile(rb"\S[^\n]*").search(self._content, start)
        if not first:
            header = ", ".join(repr(cell.strip()) for cell in next(self._rows())[1][:4])
            raise InputError(
                f"{self.path}: holds a header ({header}) but no rows below it; if that row is data, name the "
                "columns in a row above it"
            )
        # A row has to fit into a block, and feature rows can be long.
        block_size = 16 * max(len(first.group()), 1 << 18)
        try:
            table = arrow_csv.read_csv(
                pa.BufferReader(pa.py_buffer(self._content).slice(start)),
                read_options=arrow_csv.ReadOptions(column_names=names, block_size=block_size),
                parse_options=arrow_csv.ParseOptions(
                    delimiter=self._delimiter, newlines_in_values=b'"' in self._content
                ),
                # Cells stay text: whoever knows what a column means converts it and can point at a bad cell.
                convert_options=arrow_csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string())),
            )
        except pa.ArrowInvalid as error:
            raise self._explain(error) from None
        return list(table.columns)

    def _end_of_header(self) -> int:
        line, _ = next(self._rows())
        end = -1
        for _ in range(line):
            end = self._content.find(b"\n", end + 1)
            if end < 0:
                return len(self._content)
        return end + 1

    def _settle_header(self, first: Sequence[str]) -> None:
        """Decide between a header and a row of text ids: names that occur as ids below are ids."""
        usual = bool(NAMES_OF_COLUMNS.intersection(cell.strip().lower() for cell in first))
        self._headed = usual or suffix_of(self.path) in (".csv", ".tsv")
        self.columns = self._columns()
        names = [cell for cell in first[:2] if not is_number(cell)]
        if self._headed and any(
            compute.index(column, name).as_py() >= 0
            for name in text_to_arrow(np.array(names, dtype=object))
            for column in self.columns[:2]
        ):
            self._headed = usual = False
            self.columns = self._columns()
        if not usual:
            meaning = "column names" if self._headed else "data, not as column names"
            self.notes.append(f"{self.path.name}: first row ({', '.join(first[:4])}) read as {meaning}")

    def _explain(self, error: Exception) -> InputError:
        try:
            for line, cells in self._rows():
                if len(cells) != self._width:
                    return InputError(
                        f"{self.path}, row {line}: {len(cells)} cells where the first row has {self._width}; "
                        f"mend the row"
                    )
        except InputError as found:
            return found
        return InputError(f"{self.path}: {' '.join(str(error).split())}")

    def _not_utf8(self) -> InputError:
        try:
            self._content.decode("utf-8")
        except UnicodeDecodeError as error:
            line = self._content.count(b"\n", 0, error.start) + 1
            byte = self._content[error.start]
            return InputError(
                f"{self.path}, row {line}: byte 0x{byte:02x} is not UTF-8; save the file as UTF-8"
            )
        return InputError(f"{self.path}: is not UTF-8 text; save it as UTF-8")


def _has_decimal_commas(line: bytes) -> bool:
    """Whether semicolons part the cells of a line and each comma in it is within a number, as in 1;2;0,5."""
    cells = [cell.strip() for cell in line.split(b";")]
    return len(cells) > 1 and all(b"," not in cell or _DECIMAL_COMMA.fullmatch(cell) for cell in cells)


def _single_spaced(content: bytes) -> bytes:
    # Plain replacements run at memory speed; a regular expression takes a second for a million edges.
    content = content.replace(b"\t", b" ")
    while b"  " in content:
        content = content.replace(b"  ", b" ")
    content = content.replace(b"\n ", b"\n").replace(b" \n", b"\n")
    return content.strip(b" ")


def _is_header(first: Sequence[str], rest: Sequence[Sequence[str]]) -> bool | None:
    """Whether the first row names columns; None when it is text and nothing decides."""
    cells = [cell.strip().lower() for cell in first]
    if not cells[0]:
        return True
    # pandas names unnamed feature columns 0, 1, 2 ...
    if len(cells) > 3 and cells[1:] == [str(place) for place in range(len(cells) - 1)]:
        return True
    if not rest and not any(map(is_number, cells)):
        return None
    below = list(zip(*(row for row in rest if len(row) == len(first)), strict=True))
    if not below:
        return bool(NAMES_OF_COLUMNS.intersection(cells))
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
