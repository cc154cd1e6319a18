"""Node ids of files become rows of the store, in bounded memory."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spgcl.errors import InputError
from spgcl.io.arrow import from_arrow
from spgcl.scale.sources import Part

# Sources, targets and perhaps weights of some edges, as rows of the graph.
Edges = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32] | None]


class Numbers:
    """Integer ids, each once; without a list of them, ids are the rows 0 ... num_nodes - 1."""

    def __init__(self, num_nodes: int, listed: NDArray[np.int64] | None, origin: str) -> None:
        self._num_nodes, self._origin = num_nodes, origin
        self._sorted: NDArray[np.int64] | None = None
        self._order: NDArray[np.int64] | None = None
        if listed is None or (listed[0] == 0 and (listed == np.arange(num_nodes)).all()):
            return
        rising = (listed[1:] > listed[:-1]).all()
        self._order = None if rising else np.argsort(listed, kind="stable")
        self._sorted = listed if self._order is None else listed[self._order]

    @property
    def are_rows(self) -> bool:
        """Whether ids are the rows themselves."""
        return self._sorted is None

    def edges(self, parts: Iterable[Part]) -> Iterator[Edges]:
        """The same edges between rows."""
        for part in parts:
            ends = [self._rows_of(from_arrow(side), part) for side in (part.sources, part.targets)]
            yield ends[0], ends[1], part.weights

    def _rows_of(self, ids: NDArray[Any], part: Part) -> NDArray[np.int64]:
        if ids.dtype.kind != "i":
            index = next(index for index, node in enumerate(ids.tolist()) if not _is_whole(node))
            raise InputError(
                f"{part.where(index)}: node {ids.tolist()[index]!r} is not in {self._origin}, which has "
                "numbers as ids; give features as a table with these ids"
            )
        if self._sorted is None:
            found, known = ids, (ids >= 0) & (ids < self._num_nodes)
        else:
            found = np.searchsorted(self._sorted, ids).clip(max=self._num_nodes - 1)
            known = self._sorted[found] == ids
            found = found if self._order is None else self._order[found]
        if not known.all():
            index = int(np.argmin(known))
            raise InputError(
                f"{part.where(index)}: node {int(ids[index])} is not in {self._origin}; "
                "add its row or drop the edge"
            )
        return found


def _is_whole(node: str) -> bool:
    """Whether text is an integer as Python writes it."""
    return node.removeprefix("-").isdecimal() and str(int(node)) == node


def distinct_numbers(parts: Iterable[Part]) -> NDArray[np.int64] | None:
    """The sorted ids of all edges; None if some are text."""
    known = np.empty(0, dtype=np.int64)
    for part in parts:
        ends = [from_arrow(side) for side in (part.sources, part.targets)]
        if any(side.dtype.kind != "i" for side in ends):
            return None
        known = np.union1d(known, np.unique(np.concatenate(ends)))
    return known


class Texts:
    """Ids as text, numbered by DuckDB, which spills to a folder what memory cannot hold."""

    def __init__(self, scratch: Path, memory: int) -> None:
        self._nodes, self._edges, self._joined = (
            scratch / f"{name}.parquet" for name in ("nodes", "edges", "joined")
        )
        self._connection = _duckdb(scratch, memory)

    def _ask(self, query: str) -> Any:
        import duckdb

        try:
            return self._connection.execute(query)
        except duckdb.Error as error:
            reason = " ".join(str(error).split())[:160]
            raise InputError(
                f"node ids could not be numbered ({reason}); raise --memory or make room"
            ) from None

    def list_nodes(self, parts: Iterable[Any]) -> None:
        """Take the ids of a table of features, Arrow arrays, in their order."""
        import pyarrow as pa

        _write_parquet(self._nodes, (pa.table({"node": part.cast(pa.string())}) for part in parts))

    def write_edges(self, parts: Iterable[Part]) -> bool:
        """Take the edges; returns whether they have weights."""
        return "weight" in _write_parquet(self._edges, map(_edge_table, parts))

    def number_nodes(self) -> None:
        """Number the nodes of the edges, sorted by their bytes."""
        edges, nodes = map(_literal, (self._edges, self._nodes))
        self._ask(
            "COPY (SELECT row_number() OVER (ORDER BY node) - 1 AS row, node FROM (SELECT source AS node "
            f"FROM {edges} UNION SELECT target FROM {edges}) ORDER BY node) TO {nodes} (FORMAT PARQUET)"
        )

    def nodes(self) -> Iterator[Any]:
        """The ids in the order of their rows, as Arrow arrays."""
        from pyarrow import parquet

        with parquet.ParquetFile(self._nodes, pre_buffer=False) as file:
            for batch in file.iter_batches(columns=["node"], use_threads=False):
                yield batch.column(0)

    def repeated(self) -> str | None:
        """An id that two nodes have."""
        nodes = _literal(self._nodes)
        found = self._ask(f"SELECT node FROM {nodes} GROUP BY node HAVING count(*) > 1 LIMIT 1").fetchone()
        return None if found is None else str(found[0])

    def unknown(self) -> tuple[int, str] | None:
        """The number of an edge, from 0, that has an end without a row, and that end."""
        edges, nodes = map(_literal, (self._edges, self._nodes))
        found = self._ask(
            "SELECT row, node FROM (SELECT row, unnest([source, target]) AS node FROM "
            f"{edges}) ANTI JOIN {nodes} known USING (node) ORDER BY row LIMIT 1"
        ).fetchone()
        return None if found is None else (int(found[0]), str(found[1]))

    def join(self, *, weighted: bool) -> Path:
        """Write the edges between rows; with weights in their order, as sums of weights depend on it."""
        edges, nodes, joined = map(_literal, (self._edges, self._nodes, self._joined))
        weight, order = (", weight", " ORDER BY e.row") if weighted else ("", "")
        self._ask(
            f"COPY (SELECT s.row AS source, t.row AS target{weight} FROM {edges} e JOIN {nodes} s ON "
            f"e.source = s.node JOIN {nodes} t ON e.target = t.node{order}) TO {joined} (FORMAT PARQUET)"
        )
        return self._joined


def _literal(path: Path) -> str:
    """A path in SQL."""
    return "'" + str(path).replace("'", "''") + "'"


def _duckdb(scratch: Path, memory: int) -> Any:
    try:
        import duckdb
    except ImportError:
        raise InputError(
            "node ids that are text need DuckDB; install it: pip install 'spgcl[scale]'"
        ) from None
    spill = scratch / "spill"
    spill.mkdir()
    # Sorts exceed the limit by about half.
    settings = {"memory_limit": f"{memory * 6 // 10 // 2**20}MiB", "temp_directory": str(spill)}
    return duckdb.connect(config={**settings, "preserve_insertion_order": "false", "threads": "2"})


def _edge_table(part: Part) -> Any:
    import pyarrow as pa

    from spgcl.io.arrow import to_arrow

    columns = {"source": part.sources.cast(pa.string()), "target": part.targets.cast(pa.string())}
    if part.weights is not None:
        columns["weight"] = to_arrow(part.weights)
    return pa.table(columns)


def _write_parquet(path: Path, tables: Iterable[Any]) -> list[str]:
    """Write tables into one file, with the number of every row; returns the names of the columns."""
    from pyarrow import parquet

    from spgcl.io.arrow import to_arrow

    writer, before, names = None, 0, []
    for table in tables:
        numbered = table.append_column("row", to_arrow(np.arange(before, before + len(table))))
        writer = writer or parquet.ParquetWriter(path, numbered.schema)
        writer.write_table(numbered)
        before, names = before + len(table), table.column_names
    if writer is not None:
        writer.close()
    return names
