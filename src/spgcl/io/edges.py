"""Edge lists in text or Parquet files."""

import shlex
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute

from spgcl.errors import InputError, shown
from spgcl.io.draft import NO_WEIGHTS, Draft, Options, from_id_pairs
from spgcl.io.relations import NAMES, read_relations, relation_column
from spgcl.io.tables import Table, id_column, read_numbers, read_table
from spgcl.io.text import is_number

_FIX_WEIGHTS = "fix it, or ignore all weights (--weight none)"


# Names of both ends that are found wherever they stand in a table.
_ENDS = (("source", "target"), ("src", "dst"), ("from", "to"), ("head", "tail"), ("subject", "object"))


def read_edge_list(path: Any, named: Options) -> Draft:
    """Read an edge list from a file or a table in memory: two columns of ids and perhaps one of weights."""
    asked = None if named.weight_column == NO_WEIGHTS else named.weight_column
    table = read_table(path, named.source_column, named.target_column, asked)
    source, target, weight = choose_columns(table, named)
    relation = relation_column(table, table.others(source, target, weight)) if named.relations else None
    notes = notes_on(table, named, source, target, weight, relation)
    weights = None if weight is None else read_weights(table, weight)
    ends = (id_column(table, column) for column in (source, target))
    if named.bipartite:
        names = [table.names[column] if table.headed else end for column, end in _sides(source, target)]
        ends = (_prefixed(side, name) for side, name in zip(ends, names, strict=True))
        notes.append(f"{table.path.name}: ids of the two sides begin with {names[0]}: and {names[1]}:")
    first, second = ends
    if not named.bipartite and _of_two_kinds(table, source, target, first, second):
        both = f"{table.names[source]!r} and {table.names[target]!r}"
        notes.append(
            f"{table.path.name}: {both} share numbers, which are the same nodes here; --bipartite keeps them "
            "apart"
        )
    return from_id_pairs(
        first,
        second,
        weights=weights,
        notes=tuple(notes),
        relations=None if relation is None else read_relations(table, relation),
        where=lambda index: f"{table.path}, row {table.row(index)}",
    )


def _sides(source: int, target: int) -> tuple[tuple[int, str], tuple[int, str]]:
    return (source, "source"), (target, "target")


def _prefixed(ids: "pa.Array | pa.ChunkedArray", side: str) -> "pa.Array | pa.ChunkedArray":
    return compute.binary_join_element_wise(side, ids.cast(pa.string()), ":")


def _of_two_kinds(
    table: Table,
    source: int,
    target: int,
    first: "pa.Array | pa.ChunkedArray",
    second: "pa.Array | pa.ChunkedArray",
) -> bool:
    """Whether ends whose columns have unlike names, such as user and item, share ids that are numbers."""
    names = [table.names[column].lower() for column in (source, target)]
    if not table.headed or not (pa.types.is_integer(first.type) and pa.types.is_integer(second.type)):
        return False
    usual = any(set(names) == set(ends) for ends in _ENDS)
    # As in node_1 and node_2, u and v, who and whom.
    alike = min(map(len, names)) < 3 or names[0][:3] == names[1][:3] or names[0][-3:] == names[1][-3:]
    if usual or alike:
        return False
    return bool(compute.any(compute.is_in(compute.unique(first), compute.unique(second))).as_py())


def notes_on(
    table: Table, named: Options, source: int, target: int, weight: int | None, *others: int | None
) -> list[str]:
    """How a table was read, in words; an error if columns would be ignored that nobody asked to ignore."""
    notes = [*table.notes, *_ignored(table, named, source, target, weight, *others)]
    if weight is not None:
        name = table.names[weight]
        notes.append(f"{table.path.name}: {name!r} used as edge weights; --weight none ignores them")
    return notes


def choose_columns(table: Table, named: Options) -> tuple[int, int, int | None]:
    """Columns of sources, targets and weights: those named, else the first free ones."""
    source = table.find(named.source_column) if named.source_column else None
    target = table.find(named.target_column) if named.target_column else None
    if source is None and target is None:
        source, target = _usual_ends(table)
    if source is None and target is None and table.headed and not table.names[0]:
        raise InputError(
            f"{table.path}: the first column has no name (a row index?); name both ends: --source --target"
        )
    weight = _weight_column(table, named, {source, target})
    free = table.others(source, target, weight)
    if (source is None) + (target is None) > len(free):
        raise InputError(
            f"{table.path}: too few columns for two ends and a weight ({', '.join(map(repr, table.names))}); "
            "separate columns by comma, tab or space, or use --weight none"
        )
    source = free.pop(0) if source is None else source
    target = free.pop(0) if target is None else target
    if len({source, target, weight}) < 3:
        chosen = [table.names[column] for column in (source, target, weight) if column is not None]
        raise InputError(
            f"{table.path}: source, target and weight are columns {', '.join(map(repr, chosen))}; "
            "name different ones (--weight none: no weights)"
        )
    # Without a header, a third column can only be weights.
    unclear = named.weight_column is None and not named.relations
    if weight is None and unclear and not table.headed and len(table.columns) == 3:
        weight = free[0] if _are_weights(table, named, free[0]) else None
    return source, target, weight


def _are_weights(table: Table, named: Options, column: int) -> bool:
    """Whether a column without a header has weights; text is that of relations if both ends are named."""
    if _begins_with_a_number(table, column):
        return True
    if named.source_column and named.target_column:
        return False
    cell = shown(table.columns[column][0].as_py())
    raise InputError(
        f"{table.cell(0, column)}: {cell} is not a finite number; of triples head, relation, tail name both "
        f"ends (--source 'column 1' --target 'column 3'), else {_FIX_WEIGHTS}"
    )


def _usual_ends(table: Table) -> tuple[int | None, int | None]:
    """The columns of both ends, if their names are usual ones."""
    names = [name.lower() for name in table.names] if table.headed else []
    for ends in _ENDS:
        if all(names.count(name) == 1 for name in ends):
            return names.index(ends[0]), names.index(ends[1])
    return None, None


def _weight_column(table: Table, named: Options, ends: set[int | None]) -> int | None:
    """The column named for weights, or the one called `weight`."""
    if named.weight_column == NO_WEIGHTS:
        return None
    if named.weight_column:
        return table.find(named.weight_column)
    if not table.headed or len(table.columns) <= 2:
        return None
    called = [column for column, name in enumerate(table.names) if name.lower() == "weight"]
    return next((column for column in called if column not in ends), None)


def _ignored(
    table: Table, named: Options, source: int, target: int, weight: int | None, *more: int | None
) -> list[str]:
    """A note on the columns that are not used, or an error if nobody asked for that."""
    unused = table.others(source, target, weight, *more)
    if not unused:
        return []
    others = [table.names[column] for column in unused]
    listed = ", ".join(map(repr, others[:5])) + (" ..." if len(others) > 5 else "")
    if all(name.lower() in NAMES for name in others):
        kinds = len(set(table.columns[unused[0]].to_pylist()))
        return [
            f"{table.path.name}: {listed} ignored: edges of {kinds:,} kinds are read as one kind; without "
            "other features, --structural relations counts them per node"
        ]
    if (named.source_column and named.target_column) or named.weight_column == NO_WEIGHTS:
        return [f"{table.path.name}: columns ignored: {listed}"]
    ends = [shlex.quote(table.names[column]) for column in (source, target)]
    numbers = [
        name for name, column in zip(others, unused, strict=True) if _begins_with_a_number(table, column)
    ]
    weights = (
        f", and --weight {shlex.quote(numbers[0])} if that is a weight" if weight is None and numbers else ""
    )
    raise InputError(
        f"{table.path}: columns {listed} would be ignored; confirm it by naming the ends: "
        f"--source {ends[0]} --target {ends[1]}{weights}"
    )


def _begins_with_a_number(table: Table, column: int) -> bool:
    first = table.columns[column][0].as_py() if len(table.columns[column]) else None
    return first is None or is_number(first)


def read_weights(table: Table, column: int) -> NDArray[np.float32]:
    """A column of positive weights."""
    weights = read_numbers(table, column, fix=_FIX_WEIGHTS)
    if not (weights > 0).all():
        bad = int(np.argmin(weights > 0))
        cell = table.columns[column][bad].as_py()
        raise InputError(f"{table.cell(bad, column)}: weight {cell} is not positive; {_FIX_WEIGHTS}")
    return weights
