"""Columns of numbers, categories, dates and text become features: learned once, kept as plain data.

What is learned is a record of JSON: means, categories, weights of hashed pieces of text. So a run can keep it
and apply it to new nodes without executing anything that was read from disk. The TableVectorizer of skrub has
the same rules for what is a category, a date or text, but what it has learned can only be kept as a pickle.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute

from spgcl.errors import InputError, note, shown
from spgcl.io.arrow import from_arrow, to_arrow
from spgcl.io.tables import Table, read_numbers, read_vectors
from spgcl.io.text_columns import learn_text, text_columns

# Cells that hold no value.
_NOTHING = ("", "nan", "na", "n/a", "none", "null", "<na>")
# Fewer different values than this are categories; more are text.
MOST_CATEGORIES = 40
# From this fraction of numbers on, other cells of a column are mistakes.
_MOSTLY = 0.9
# Six digits of a learned number are kept, and applied as they are kept.
_DIGITS = 6

Record = dict[str, Any]
Values = NDArray[np.float64]


def learn_encoding(table: Table, columns: Sequence[int]) -> Record:
    """What is learned of the columns of a table: the kind of each, and what its kind needs."""
    return {"columns": [_learned(table, column) for column in columns]}


def encoded(table: Table, encoding: Mapping[str, Any]) -> tuple[NDArray[np.float32], tuple[str, ...]]:
    """The features that an encoding makes of a table with the same columns, and their names."""
    blocks, names = [], []
    for record in encoding["columns"]:
        if record["name"] not in table.names:
            raise InputError(
                f"{table.path}: no column {record['name']!r}, which was learned from; give the same columns"
            )
        block, parts = _APPLIED[record["kind"]](table, table.find(record["name"]), record)
        blocks.append(block)
        names += [f"{record['name']}{part}" for part in parts]
    if not names:
        raise InputError(f"{table.path}: no column holds a value; give features with --columns")
    return np.hstack(blocks).astype(np.float32), tuple(names)


def described(encoding: Mapping[str, Any]) -> str:
    """How every column was read, in words."""
    words = {
        "number": "a number",
        "category": "categories",
        "date": "a date",
        "text": "text",
        "vector": "vectors",
        "empty": "empty, left out",
    }
    return ", ".join(f"{record['name']!r} as {words[record['kind']]}" for record in encoding["columns"])


def _learned(table: Table, column: int) -> Record:
    values, name = table.columns[column], table.names[column]
    vectors = read_vectors(table, column)
    if vectors is not None:
        return {"name": name, "kind": "vector", "width": vectors.shape[1]}
    known = _filled(values)
    if not known.any():
        return {"name": name, "kind": "empty"}
    if pa.types.is_nested(values.type) or pa.types.is_binary(values.type) or pa.types.is_time(values.type):
        raise InputError(
            f"{table.path}, column {name!r}: {values.type} is no number, category, date or text; leave it "
            "out (--columns)"
        )
    if (numbers := _numbers(table, column)) is not None:
        missing = bool(np.isnan(numbers).any())
        return {"name": name, "kind": "number", **_spread(numbers), "missing": missing}
    if (days := _days(values)) is not None:
        hours = bool((days[known] % 1 != 0).any())
        return {"name": name, "kind": "date", **_spread(days), "hours": hours}
    words = [word for word, there in zip(_words(values), known, strict=True) if there]
    categories = sorted(set(words))
    if len(categories) < MOST_CATEGORIES:
        return {"name": name, "kind": "category", "values": categories}
    return {"name": name, "kind": "text", **learn_text(words)}


def _spread(numbers: Values) -> Record:
    """Mean and deviation of the numbers that are there."""
    found = numbers[~np.isnan(numbers)]
    deviation = _kept(float(found.std()))
    return {"mean": _kept(float(found.mean())), "deviation": deviation or 1.0}


def _kept(number: float) -> float:
    return float(f"{number:.{_DIGITS}g}")


def _filled(values: "pa.ChunkedArray") -> NDArray[np.bool_]:
    """Which cells hold a value."""
    empty = compute.is_null(values, nan_is_null=True)
    if pa.types.is_string(values.type):
        trimmed = compute.utf8_lower(compute.utf8_trim_whitespace(values))
        empty = compute.or_kleene(empty, compute.is_in(trimmed, to_arrow(np.array(_NOTHING))))
    return np.asarray(~from_arrow(empty.fill_null(True)))


def _words(values: "pa.ChunkedArray") -> list[str]:
    return ["" if value is None else str(value).strip() for value in values.to_pylist()]


def _numbers(table: Table, column: int) -> Values | None:
    """The column as numbers, NaN where a cell is empty; None if it is none of numbers."""
    values = table.columns[column]
    if pa.types.is_decimal(values.type):
        values = values.cast(pa.float64())
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    if pa.types.is_duration(values.type):
        values = values.cast(pa.duration("ms"), safe=False).cast(pa.int64())
    if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
        numbers = np.array(
            [np.nan if value is None else float(value) for value in values.to_pylist()], dtype=np.float64
        )
    elif pa.types.is_string(values.type):
        known = _filled(values)
        parsed = [
            _number(word) if there else np.nan for word, there in zip(_words(values), known, strict=True)
        ]
        right = sum(one is not None for one, there in zip(parsed, known, strict=True) if there)
        if right < _MOSTLY * known.sum():
            return None
        if right < known.sum():
            # Mistakes in a column of numbers: the error names the first.
            kept = [word if there else "0" for word, there in zip(_words(values), known, strict=True)]
            broken = pa.chunked_array([to_arrow(np.array(kept, dtype=object))])
            read_numbers(_with_column(table, column, broken), column)
        numbers = np.array(parsed, dtype=np.float64)
    else:
        return None
    large = np.abs(numbers) > np.finfo(np.float32).max
    if large.any():
        bad = int(np.argmax(large))
        cell = table.columns[column][bad].as_py()
        raise InputError(
            f"{table.cell(bad, column)}: {shown(cell)} is not a finite number; fix it or leave the column "
            "out (--columns)"
        )
    return numbers


def _with_column(table: Table, column: int, values: "pa.ChunkedArray") -> Table:
    columns = [*table.columns]
    columns[column] = values
    return Table(table.path, table.names, columns, table.headed, table.notes, table.row)


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


def _days(values: "pa.ChunkedArray") -> Values | None:
    """Days since 1970, NaN where a cell is empty; None if the column holds no dates (ISO 8601 in text)."""
    if pa.types.is_string(values.type):
        words = _words(values)
        known = _filled(values).tolist()
        text = pa.array(
            [word if there else None for word, there in zip(words, known, strict=True)], pa.string()
        )
        try:
            moments = text.cast(pa.timestamp("ms"))
        except pa.ArrowInvalid:
            return None
    elif pa.types.is_temporal(values.type) and not pa.types.is_time(values.type):
        try:
            moments = values.cast(pa.timestamp("ms"), safe=False)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return None
    else:
        return None
    stamps = moments.cast(pa.int64()).to_pylist()
    return np.array([np.nan if one is None else one / 86_400_000 for one in stamps], dtype=np.float64)


def _of_number(table: Table, column: int, record: Record) -> tuple[Values, list[str]]:
    numbers = _numbers(table, column) if _filled(table.columns[column]).any() else None
    if numbers is None:
        if _filled(table.columns[column]).any():
            raise InputError(
                f"{table.path}, column {record['name']!r}: numbers were learned from, and this is not one of "
                "numbers; give the same column"
            )
        numbers = np.full(len(table.columns[column]), np.nan)
    absent = np.isnan(numbers)
    scaled = np.where(absent, 0, (numbers - record["mean"]) / record["deviation"])
    if not record["missing"]:
        return scaled[:, None], [""]
    return np.column_stack([scaled, absent]), ["", " missing"]


def _of_category(table: Table, column: int, record: Record) -> tuple[Values, list[str]]:
    values, categories = table.columns[column], record["values"]
    index = {word: position for position, word in enumerate(categories)}
    block, unknown = np.zeros((len(values), len(categories))), 0
    for row, (word, there) in enumerate(zip(_words(values), _filled(values).tolist(), strict=True)):
        if there and word in index:
            block[row, index[word]] = 1
        unknown += there and word not in index
    if unknown:
        note(f"{table.path}: {unknown:,} cells of {record['name']!r} hold values that were not learned from")
    return block, [f"={word}" for word in categories]


def _of_date(table: Table, column: int, record: Record) -> tuple[Values, list[str]]:
    values = table.columns[column]
    days = _days(values)
    if days is None:
        raise InputError(
            f"{table.path}, column {record['name']!r}: dates were learned from, and not every cell is one; "
            "write them as 2024-05-31 or 2024-05-31 12:00"
        )
    absent = np.isnan(days)
    whole = np.floor(np.where(absent, record["mean"], days)).astype("datetime64[D]")
    months = whole.astype("datetime64[M]").astype(int) % 12
    weekdays = (whole.astype(int) + 3) % 7
    # Angles: December is next to January, and Sunday to Monday.
    turns = [months / 12, weekdays / 7]
    parts = ["", " month (sine)", " month (cosine)", " weekday (sine)", " weekday (cosine)"]
    if record["hours"]:
        turns.append(np.where(absent, 0, days % 1))
        parts += [" hour (sine)", " hour (cosine)"]
    angles = [wave(2 * np.pi * turn) for turn in turns for wave in (np.sin, np.cos)]
    block = np.column_stack([(days - record["mean"]) / record["deviation"], *angles])
    block[absent] = 0
    return block, parts


def _of_text(table: Table, column: int, record: Record) -> tuple[Values, list[str]]:
    values = table.columns[column]
    known = _filled(values).tolist()
    words = [word if there else "" for word, there in zip(_words(values), known, strict=True)]
    block = text_columns(words, record)
    return block, [f"[{part}]" for part in range(block.shape[1])]


def _of_vector(table: Table, column: int, record: Record) -> tuple[Values, list[str]]:
    vectors = read_vectors(table, column)
    if vectors is None or vectors.shape[1] != record["width"]:
        width = record["width"]
        raise InputError(
            f"{table.path}, column {record['name']!r}: give lists of {width} numbers, as learned"
        )
    return vectors.astype(np.float64), [f"[{part}]" for part in range(record["width"])]


def _of_nothing(table: Table, column: int, record: Record) -> tuple[Values, list[str]]:
    del record
    return np.zeros((len(table.columns[column]), 0)), []


_APPLIED: dict[str, Callable[[Table, int, Record], tuple[Values, list[str]]]] = {
    "number": _of_number,
    "category": _of_category,
    "date": _of_date,
    "text": _of_text,
    "vector": _of_vector,
    "empty": _of_nothing,
}
