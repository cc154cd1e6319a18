"""The files that a store is made from, read in parts: edge lists and feature tables, by name or pattern."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spgcl.errors import InputError
from spgcl.io.arrow import to_arrow
from spgcl.io.chunks import table_chunks
from spgcl.io.draft import NO_WEIGHTS, Options
from spgcl.io.edges import choose_columns, notes_on, read_weights
from spgcl.io.features import MATRICES, ids_beside, read_features, stack_columns
from spgcl.io.opening import naming, opening, suffix_of
from spgcl.io.tables import Table, id_column

# Bytes of memory for each cell of a table that is read, and for each entry of a matrix.
BYTES_PER_CELL = 160
BYTES_PER_ENTRY = 16
# Kinds of tables that are read in parts.
TABLES = (".csv", ".tsv", ".txt", ".parquet")
EDGE_LISTS = (*TABLES, ".edges", ".edgelist")
_MAGIC = re.compile(r"[*?[]")


@dataclass(frozen=True, eq=False)
class Part:
    """Some edges: ids in Arrow, and where the edge of an index is."""

    sources: Any
    targets: Any
    weights: NDArray[np.float32] | None
    where: Callable[[int], str]


def files_of(patterns: Sequence[str], suffixes: Sequence[str]) -> list[Path]:
    """The files of some names or patterns, those of a pattern in alphabetical order."""
    found: list[Path] = []
    for pattern in patterns:
        path = Path(pattern)
        is_name = path.exists() or not _MAGIC.search(pattern)
        matching = [path] if is_name else sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
        if not matching:
            raise InputError(f"{pattern}: no file has such a name; check the path")
        found += matching
    for path in found:
        if suffix_of(path) not in suffixes:
            raise InputError(f"{path}: cannot read {path.suffix!r}; use {', '.join(suffixes)}")
    return found


class EdgeFiles:
    """Edge lists that are one graph, read as often as needed."""

    def __init__(self, patterns: Sequence[str], named: Options, memory: int) -> None:
        self.files = files_of(patterns, EDGE_LISTS)
        self._named, self._cells = named, max(1, memory // BYTES_PER_CELL)
        self.notes: dict[str, None] = {}

    def parts(self) -> Iterator[Part]:
        """All edges in order."""
        weighted: bool | None = None
        for path in self.files:
            with naming(path):
                for part in self._parts_of(path):
                    weighted = part.weights is not None if weighted is None else weighted
                    if weighted != (part.weights is not None):
                        raise InputError("some files have edge weights, others none; use --weight none")
                    yield part

    def _parts_of(self, path: Path) -> Iterator[Part]:
        named, chosen = self._named, None
        asked = None if named.weight_column == NO_WEIGHTS else named.weight_column
        wanted = (named.source_column, named.target_column, asked)
        for table in table_chunks(path, *wanted, cells=self._cells):
            if chosen is None:
                chosen = choose_columns(table, named)
                self.notes |= dict.fromkeys(notes_on(table, named, *chosen))
            source, target, weight = chosen
            yield Part(
                id_column(table, source),
                id_column(table, target),
                None if weight is None else read_weights(table, weight),
                partial(_row, table),
            )


class FeatureFiles:
    """Feature tables with ids, or matrices without, read as often as needed."""

    def __init__(self, pattern: str, id_name: str | None, columns: Sequence[str] | None, memory: int) -> None:
        self.files = files_of([pattern], (*TABLES, *MATRICES))
        self._id_name, self._columns, self._memory = id_name, columns, memory
        self.are_tables = suffix_of(self.files[0]) in TABLES
        self.has_ids = self.are_tables or self.files[0].with_suffix(".nodes.txt").exists()
        self.names: tuple[str, ...] = ()
        self.notes: dict[str, None] = {}
        if any((suffix_of(path) in TABLES) != self.are_tables for path in self.files):
            raise InputError(f"{pattern}: features are tables or matrices, not both; choose one kind")
        if columns and not self.are_tables:
            raise InputError(f"columns {', '.join(columns)} are those of a table; leave them out (--columns)")

    @property
    def origin(self) -> str:
        """What to call them in an error."""
        return str(self.files[0]) if len(self.files) == 1 else f"{self.files[0]} and the other files"

    def parts(self) -> Iterator[tuple[Any, NDArray[np.float32]]]:
        """Ids in Arrow, None for matrices, and finite float32 rows."""
        width: int | None = None
        for path in self.files:
            with naming(path):
                for ids, rows in self._tables(path) if self.are_tables else self._matrix(path):
                    width = width or rows.shape[1]
                    if rows.shape[1] != width:
                        raise InputError(f"has {rows.shape[1]} feature columns, the first file {width}")
                    yield ids, rows

    def ids(self) -> Iterator[Any]:
        """Ids alone, in Arrow."""
        if not self.are_tables:
            yield from (ids for ids, _ in self.parts())
            return
        for path in self.files:
            for table in self._chunks(path):
                yield id_column(table, table.key(self._id_name))

    def _chunks(self, path: Path) -> Iterator[Table]:
        names = (self._id_name, *(self._columns or ()))
        return table_chunks(path, *names, cells=self._memory // BYTES_PER_CELL)

    def _tables(self, path: Path) -> Iterator[tuple[Any, NDArray[np.float32]]]:
        for table in self._chunks(path):
            key = table.key(self._id_name)
            others = list(map(table.find, self._columns)) if self._columns else table.others(key)
            if not others:
                raise InputError(f"no feature columns besides {table.names[key]!r}; add some")
            rows = stack_columns(table, others)
            _require_finite(rows, partial(_row, table))
            if table.headed and rows.shape[1] == len(others):
                self.names = tuple(table.names[column] for column in others)
            self.notes |= dict.fromkeys(table.notes)
            yield id_column(table, key), rows

    def _matrix(self, path: Path) -> Iterator[tuple[Any, NDArray[np.float32]]]:
        whole: Any
        if suffix_of(path) == ".npy":
            with opening(path, "NumPy file"):
                whole = np.load(path, mmap_mode="r", allow_pickle=False)
        else:
            whole = read_features(path).matrix
        if whole.ndim != 2 or not whole.shape[1] or whole.dtype.kind not in "biuf":
            raise InputError(f"features need numbers in two dimensions, not {whole.dtype} {whole.shape}")
        ids = ids_beside(path, whole.shape[0])
        size = max(1, self._memory // (BYTES_PER_ENTRY * whole.shape[1]))
        for start in range(0, whole.shape[0], size):
            rows = whole[start : start + size]
            rows = rows.toarray() if hasattr(rows, "toarray") else rows
            with np.errstate(over="ignore"):
                rows = np.array(rows, dtype=np.float32)
            _require_finite(rows, partial("{0}, row {1}".format, path), start)
            yield None if ids is None else to_arrow(ids[start : start + size]), rows


def _row(table: Table, index: int) -> str:
    """Where a row of a table is, in words."""
    return f"{table.path}, row {table.row(index)}"


def _require_finite(rows: NDArray[np.float32], where: Callable[[int], str], before: int = 0) -> None:
    finite = np.isfinite(rows)
    if not finite.all():
        row, column = np.argwhere(~finite)[0].tolist()
        raise InputError(
            f"{where(before + row)}, column {column} is {rows[row, column]}; features must be finite numbers"
        )
