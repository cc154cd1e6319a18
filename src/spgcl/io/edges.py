"""Edge lists in text or Parquet files."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spgcl.errors import InputError
from spgcl.io.draft import NO_WEIGHTS, Draft, from_id_pairs
from spgcl.io.tables import Table, id_column, need_header, read_numbers, read_table


@dataclass(frozen=True)
class EdgeColumns:
    """Column names that a user gave for an edge table; `column 1`, `column 2` ... where it has no header."""

    source: str | None = None
    target: str | None = None
    weight: str | None = None


def read_edge_list(path: Path, named: EdgeColumns) -> Draft:
    """Read an edge list: two columns of ids and perhaps one of weights."""
    weight = None if named.weight == NO_WEIGHTS else named.weight
    table = read_table(path, named_columns=need_header(named.source, named.target, weight))
    if len(table.columns) < 2:
        raise InputError(
            f"{path}: an edge list needs two columns, found only {table.names[0]!r}; "
            f"separate them by comma, tab or space"
        )
    source, target, weighing = _choose_columns(table, named)
    notes = [*table.notes, *_left_aside(table, named, {source, target, weighing})]
    weights = None
    if weighing is not None:
        weights = _read_weights(table, weighing)
        notes.append(
            f"{path.name}: {table.names[weighing]!r} used as edge weights; --weight none leaves it aside"
        )
    return from_id_pairs(
        id_column(table, source),
        id_column(table, target),
        weights=weights,
        notes=tuple(notes),
        origin=str(path),
        place=lambda index: f"{path}, row {table.row(index)}",
    )


def _choose_columns(table: Table, named: EdgeColumns) -> tuple[int, int, int | None]:
    """Columns of sources, targets and weights: as named, else the first free ones."""
    source = table.find(named.source) if named.source else None
    target = table.find(named.target) if named.target else None
    if source is None and target is None and table.headed and not table.names[0]:
        raise InputError(
            f"{table.path}: the first column has no name (a row index?); name both: --source --target"
        )
    weight = _weight_column(table, named, {source, target})
    free = [place for place in range(len(table.columns)) if place not in (source, target, weight)]
    if (source is None) + (target is None) > len(free):
        raise InputError(
            f"{table.path}: columns {', '.join(map(repr, table.names))} do not hold two ends beside the "
            "weights; is the weight one of the ends? (--weight none: no weights)"
        )
    source = free.pop(0) if source is None else source
    target = free.pop(0) if target is None else target
    if source == target:
        raise InputError(f"{table.path}: source and target are both column {table.names[source]!r}; name two")
    # Without a header a third column cannot be anything else.
    if weight is None and named.weight is None and not table.headed and len(table.columns) == 3:
        weight = free[0]
    return source, target, weight


def _weight_column(table: Table, named: EdgeColumns, ends: set[int | None]) -> int | None:
    """The column named for weights, or the one that is called so."""
    if named.weight == NO_WEIGHTS:
        return None
    if named.weight:
        weight = table.find(named.weight)
        if weight in ends:
            raise InputError(
                f"{table.path}: column {named.weight!r} is named as an end of the edges and as their weight; "
                "name another, or --weight none"
            )
        return weight
    called = [
        place
        for place, name in enumerate(table.names)
        if table.headed and name.lower() == "weight" and place not in ends
    ]
    return called[0] if called and len(table.columns) > 2 else None


def _left_aside(table: Table, named: EdgeColumns, used: set[int | None]) -> list[str]:
    others = [name for place, name in enumerate(table.names) if place not in used]
    if not others:
        return []
    listed = ", ".join(map(repr, others[:5])) + (" ..." if len(others) > 5 else "")
    if (named.source and named.target) or named.weight == NO_WEIGHTS:
        return [f"{table.path.name}: columns left aside: {listed}"]
    if not table.headed:
        raise InputError(
            f"{table.path}: {len(table.names)} columns and no header; name those to use, such as "
            "--source 'column 1' --target 'column 2' --weight 'column 3'"
        )
    weights = "" if None not in used else ", and --weight COLUMN where one holds weights"
    raise InputError(
        f"{table.path}: columns {listed} would be left out; say so by naming the ends: "
        f"--source COLUMN --target COLUMN{weights}"
    )


def _read_weights(table: Table, column: int) -> NDArray[Any]:
    try:
        weights = read_numbers(table, column)
    except InputError as error:
        problem = str(error).rpartition(";")[0]
        raise InputError(f"{problem}; mend it, or leave the weights aside (--weight none)") from None
    if not (weights > 0).all():
        bad = int(np.argmin(weights > 0))
        cell = table.columns[column][bad].as_py()
        raise InputError(
            f"{table.place(bad, column)}: weight {cell} is not positive; drop the edge, rescale the weights, "
            "or leave them aside (--weight none)"
        )
    return weights
