"""Edge lists in text or Parquet files."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spgcl.errors import InputError
from spgcl.io.draft import Draft, from_id_pairs
from spgcl.io.tables import Table, read_ids, read_numbers, read_table


@dataclass(frozen=True)
class EdgeColumns:
    """Column names that a user gave for an edge table."""

    source: str | None = None
    target: str | None = None
    weight: str | None = None


def read_edge_list(path: Path, named: EdgeColumns) -> Draft:
    """Read an edge list: two columns of ids and perhaps one of weights."""
    table = read_table(path, named_columns=any((named.source, named.target, named.weight)))
    if len(table.columns) < 2:
        raise InputError(
            f"{path}: an edge list needs two columns, found only {table.names[0]!r}; "
            f"separate them by comma, tab or space"
        )
    source, target = _end_columns(table, named)
    weight = _weight_column(table, named, {source, target})
    notes = [*table.notes, *_left_aside(table, named, {source, target, weight})]
    weights = None
    if weight is not None:
        weights = _positive(table, weight)
        notes.append(f"{path.name}: {table.names[weight]!r} used as edge weights")
    return from_id_pairs(
        read_ids(table, source),
        read_ids(table, target),
        weights=weights,
        notes=tuple(notes),
        origin=str(path),
        place=lambda index: f"{path}, row {table.row(index)}",
    )


def _end_columns(table: Table, named: EdgeColumns) -> tuple[int, int]:
    source = table.find(named.source) if named.source else None
    target = table.find(named.target) if named.target else None
    if source is None and target is None and table.headed and not table.names[0]:
        raise InputError(
            f"{table.path}: the first column has no name (a row index?); name both: --source --target"
        )
    free = [place for place in range(len(table.columns)) if place not in (source, target)]
    source = free.pop(0) if source is None else source
    target = free.pop(0) if target is None else target
    if source == target:
        raise InputError(f"{table.path}: source and target are both column {table.names[source]!r}; name two")
    return source, target


def _weight_column(table: Table, named: EdgeColumns, ends: set[int]) -> int | None:
    if named.weight:
        return table.find(named.weight)
    others = [place for place in range(len(table.columns)) if place not in ends]
    called = [place for place in others if table.headed and table.names[place].lower() == "weight"]
    if called:
        return called[0]
    return others[0] if others and not table.headed and len(others) == 1 else None


def _left_aside(table: Table, named: EdgeColumns, used: set[int | None]) -> list[str]:
    others = [name for place, name in enumerate(table.names) if place not in used]
    if not others:
        return []
    listed = ", ".join(map(repr, others[:5])) + (" ..." if len(others) > 5 else "")
    if named.source and named.target:
        return [f"{table.path.name}: columns left aside: {listed}"]
    if not table.headed:
        raise InputError(
            f"{table.path}: {len(table.names)} columns and no header; keep two, or a third with the weights"
        )
    way_out = "name the two to use (--source, --target), or call one 'weight'"
    raise InputError(f"{table.path}: columns {listed} would be left out; {way_out}")


def _positive(table: Table, column: int) -> NDArray[Any]:
    weights = read_numbers(table, column)
    if not (weights > 0).all():
        bad = int(np.argmin(weights > 0))
        cell = table.columns[column][bad].as_py()
        raise InputError(
            f"{table.place(bad, column)}: weight {cell} is not positive; drop the edge or rescale the weights"
        )
    return weights
