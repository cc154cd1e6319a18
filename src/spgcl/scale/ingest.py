"""Builds a store from edge lists and features in bounded memory; a store appears whole or not at all."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spgcl.errors import InputError, NoFeaturesError
from spgcl.files import exchange, locked, sync_folder
from spgcl.graph.structural import Structural, degree_names, degree_statistics
from spgcl.io.arrow import from_arrow
from spgcl.io.draft import Options
from spgcl.io.read import ALL_ZERO, made_note
from spgcl.scale.arrays import ArrayWriter, Description, DiskArray, regrouped, row_bounds
from spgcl.scale.edges import Counted, Placed, count
from spgcl.scale.ids import Edges, Numbers, Texts, distinct_numbers
from spgcl.scale.sources import EdgeFiles, FeatureFiles
from spgcl.scale.store import Store, is_store, open_store, write_manifest

# A block has so many bytes of features, and a number of rows between these.
_BLOCK_BYTES = 2**24
_LEAST_ROWS, _MOST_ROWS = 2**10, 2**16
LEAST_MEMORY = 2**26
_LARGEST_HALF = 65504


@dataclass(frozen=True)
class Sources:
    """What a store is made from.

    Attributes:
        edges: Names or patterns of edge lists.
        features: Name or pattern of feature tables or matrices.
        structural: Features to compute from the structure if there are none.
        columns: The columns of the edge lists.
        id_column: Column of node ids in a table of features, see `spgcl.io.tables.Table.key`.
        feature_columns: Columns of such a table to use, else all others.
        directed: Whether to keep direction; otherwise edges go both ways.
        half: Whether to keep features in float16.
    """

    edges: Sequence[str]
    features: str | None = None
    structural: Structural | None = None
    columns: Options = field(default_factory=Options)
    id_column: str | None = None
    feature_columns: Sequence[str] | None = None
    directed: bool = False
    half: bool = False


def ingest(
    sources: Sources,
    out: str | Path,
    *,
    memory: int = 2**31,
    block_rows: int | None = None,
    overwrite: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Store:
    """Build a store.

    Args:
        sources: The files.
        out: The store's folder. Work is done in a hidden folder beside it, which takes its name in the end: a
            process that is killed leaves nothing under that name, and the next one starts again.
        memory: Bytes to use; arrays of one number per node come on top.
        block_rows: Nodes per block; by default as many as have 16 MiB of features.
        overwrite: Replace an earlier store.
        progress: Called with what begins.
    """
    out = Path(out)
    if memory < LEAST_MEMORY:
        raise InputError(f"memory is {memory:,} bytes; give at least {LEAST_MEMORY // 2**20} MiB (--memory)")
    if not out.parent.is_dir():
        raise InputError(f"{out}: there is no folder {out.parent}; create it first")
    with locked(out):
        _settle(out)
        _require_free(out, overwrite=overwrite)
        work = out.with_name(f".{out.name}.ingest")
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        try:
            _Ingestion(sources, work, memory, block_rows, progress or (lambda _: None)).run()
            _take_name(work, out)
        finally:
            for folder in (work, _earlier(out)):
                shutil.rmtree(folder, ignore_errors=True)
    return open_store(out)


def _require_free(out: Path, *, overwrite: bool) -> None:
    if not out.exists():
        return
    if not is_store(out):
        raise InputError(f"{out} exists and is not a store; choose another --out")
    if not overwrite:
        raise InputError(f"{out} holds a store already; replace it with --overwrite")


def _take_name(work: Path, out: Path) -> None:
    """Let a store take the place of an earlier one, if there is one."""
    if out.exists() and not exchange(work, out):
        out.rename(_earlier(out))
    if work.exists() and not out.exists():
        work.rename(out)
    sync_folder(out.parent)


def _earlier(out: Path) -> Path:
    """The name of an earlier store for a moment, where two folders cannot trade names."""
    return out.with_name(f".{out.name}.old")


def _settle(out: Path) -> None:
    """Undo what a killed process left half done."""
    if _earlier(out).exists() and not out.exists():
        _earlier(out).rename(out)
    shutil.rmtree(_earlier(out), ignore_errors=True)


class _Ingestion:
    """The steps of one ingestion."""

    def __init__(
        self,
        sources: Sources,
        work: Path,
        memory: int,
        block_rows: int | None,
        progress: Callable[[str], None],
    ) -> None:
        self.sources, self.work, self.memory, self.progress = sources, work, memory, progress
        self.scratch = work / "scratch"
        self.scratch.mkdir()
        self.edges = EdgeFiles(sources.edges, sources.columns, memory // 2)
        self.features = None
        if sources.features is not None:
            self.features = FeatureFiles(
                sources.features, sources.id_column, sources.feature_columns, memory // 4
            )
        self.block_rows = block_rows or _MOST_ROWS
        self.given_block_rows = block_rows
        self.arrays: dict[str, Description] = {}
        self.notes: list[str] = []
        self._require_features()

    def run(self) -> None:
        """Write everything, the manifest last."""
        ids = self._write_features() if self.features is not None else None
        num_nodes, pairs, kind = self._numbered(ids)
        self.progress("counting edges")
        counted = count(pairs(), num_nodes, directed=self.sources.directed)
        changed = self._write_edges(counted, pairs)
        made = [] if self.features is not None else [self._write_structural(num_nodes)]
        notes = [*self.edges.notes, *(self.features.notes if self.features else ()), *changed, *made]
        names = self.features.names if self.features else degree_names(directed=False)
        shutil.rmtree(self.scratch)
        write_manifest(
            self.work,
            self.arrays,
            num_nodes=num_nodes,
            directed=self.sources.directed,
            block_rows=self.block_rows,
            ids=kind,
            notes=[*notes, *self.notes],
            feature_names=list(names),
        )

    def _require_features(self) -> None:
        sources = self.sources
        if sources.columns.bipartite:
            raise InputError("--bipartite needs the graph in memory; give ids that differ between both sides")
        if sources.features is None and sources.structural is None:
            raise NoFeaturesError(
                "no features; give them (--features FILE), or compute some from the structure "
                "(--structural degree)"
            )
        if sources.features is not None and sources.structural is not None:
            raise InputError(f"there are features already; leave out structural {sources.structural!r}")
        if sources.structural and (sources.structural != "degree" or sources.directed):
            what = "degree with --directed" if sources.structural == "degree" else sources.structural
            raise InputError(f"--structural {what} needs the graph in memory; give --features")

    def _write_features(self) -> list[NDArray[np.int64]] | None:
        """Write the features; returns their ids, None if some are text. Without ids, rows are nodes."""
        assert self.features is not None
        self.progress("reading features")
        numbers: list[NDArray[np.int64]] | None = []
        state = {"filled": False, "rows": 0}

        def matrices() -> Iterator[NDArray[Any]]:
            nonlocal numbers
            for ids, rows in self.features.parts():  # type: ignore[union-attr]
                if ids is not None and numbers is not None:
                    listed = from_arrow(ids)
                    numbers = [*numbers, listed] if listed.dtype.kind == "i" else None
                state["filled"] = state["filled"] or bool(rows.any())
                state["rows"] += len(rows)
                yield self._stored(rows)

        self._write_matrix(matrices())
        if not state["filled"]:
            self.notes.append(ALL_ZERO)
        return numbers if self.features.has_ids or numbers is None else [np.arange(state["rows"])]

    def _stored(self, rows: NDArray[np.float32]) -> NDArray[Any]:
        """Rows in the type that the store keeps."""
        if not self.sources.half:
            return rows
        largest = float(np.abs(rows).max(initial=0))
        if largest > _LARGEST_HALF:
            raise InputError(
                f"a feature is {largest:g}, above the {_LARGEST_HALF} of float16; scale features"
            )
        return rows.astype(np.float16)

    def _write_matrix(self, parts: Iterator[NDArray[Any]]) -> None:
        first = next(parts, None)
        if first is None:
            raise InputError("the graph has no nodes")
        if self.given_block_rows is None:
            rows = _BLOCK_BYTES // (first.itemsize * first.shape[1])
            self.block_rows = min(max(rows, _LEAST_ROWS), _MOST_ROWS)
        writer = ArrayWriter(self.work / "features.npy", first.dtype, first.shape[1])
        for block in regrouped(_chained(first, parts), self.block_rows):
            writer.write(block)
        self.arrays["features"] = writer.close()

    def _numbered(
        self, listed: list[NDArray[np.int64]] | None
    ) -> tuple[int, Callable[[], Iterator[Edges]], str]:
        """The number of nodes, the edges between rows, and what ids are; writes ids that are not rows."""
        self.progress("numbering nodes")
        numbers: NDArray[np.int64] | None
        if self.features is not None:
            numbers = None if listed is None else np.concatenate(listed)
        else:
            numbers = distinct_numbers(self.edges.parts())
        if numbers is None:
            return self._numbered_texts()
        if len(np.unique(numbers)) < len(numbers):
            values, counts = np.unique(numbers, return_counts=True)
            raise InputError(f"node id {values[counts > 1][0]} appears several times; ids must be unique")
        origin = self.features.origin if self.features else "the edges"
        known = Numbers(len(numbers), numbers, origin)
        if not known.are_rows:
            writer = ArrayWriter(self.work / "nodes.npy", np.int64)
            for start, stop in row_bounds(len(numbers), self.block_rows):
                writer.write(numbers[start:stop])
            self.arrays["nodes"] = writer.close()
        kind = "rows" if known.are_rows else "numbers"
        return len(numbers), lambda: known.edges(self.edges.parts()), kind

    def _numbered_texts(self) -> tuple[int, Callable[[], Iterator[Edges]], str]:
        """The same for ids that are text."""
        texts = Texts(self.scratch, self.memory)
        weighted = texts.write_edges(self.edges.parts())
        if self.features is None:
            texts.number_nodes()
        else:
            texts.list_nodes(self.features.ids())
            if (repeated := texts.repeated()) is not None:
                raise InputError(f"node id {repeated!r} appears several times; ids must be unique")
            if (unknown := texts.unknown()) is not None:
                number, node = unknown
                where, origin = self._where(number), self.features.origin
                raise InputError(f"{where}: node {node!r} is not in {origin}; add its row or drop the edge")
        joined = texts.join(weighted=weighted)
        num_nodes = self._write_texts(texts.nodes())
        rows = Numbers(num_nodes, None, "the nodes")
        names = Options("source", "target", "weight" if weighted else "none")
        return (
            num_nodes,
            lambda: rows.edges(EdgeFiles([str(joined)], names, self.memory // 2).parts()),
            "text",
        )

    def _where(self, number: int) -> str:
        for part in self.edges.parts():
            if number < len(part.sources):
                return part.where(number)
            number -= len(part.sources)
        raise AssertionError(number)

    def _write_texts(self, parts: Iterator[Any]) -> int:
        """Write text ids: their bytes, and where each ends."""
        text = ArrayWriter(self.work / "text.npy", np.uint8)
        ends = [np.zeros(1, dtype=np.int64)]
        for block in regrouped(map(from_arrow, parts), self.block_rows):
            encoded = [node.encode("utf-8") for node in block.tolist()]
            text.write(np.frombuffer(b"".join(encoded), np.uint8))
            ends.append(ends[-1][-1] + np.cumsum([len(one) for one in encoded], dtype=np.int64))
        self.arrays["text"] = text.close()
        writer = ArrayWriter(self.work / "ends.npy", np.int64)
        writer.write(np.concatenate(ends))
        self.arrays["ends"] = writer.close()
        return self.arrays["ends"].shape[0] - 1

    def _write_edges(self, counted: Counted, pairs: Callable[[], Iterator[Edges]]) -> list[str]:
        placed = Placed(
            self.scratch,
            counted,
            block_rows=self.block_rows,
            memory=self.memory,
            directed=self.sources.directed,
        )
        self.progress("placing edges")
        placed.place(pairs())
        self.progress("sorting rows")
        arrays, changed = placed.write(self.work, self.block_rows)
        self.arrays |= arrays
        return changed

    def _write_structural(self, num_nodes: int) -> str:
        self.progress("computing features")
        rows, columns = (
            DiskArray(self.work / f"{name}.npy", self.arrays[name]).mapped for name in ("rows", "columns")
        )
        sizes = np.log1p(np.diff(rows))

        def matrices() -> Iterator[NDArray[Any]]:
            for start, stop in row_bounds(num_nodes, self.block_rows):
                pointers = rows[start : stop + 1] - rows[start]
                near = columns[rows[start] : rows[stop]]
                yield self._stored(degree_statistics(pointers, near, sizes[start:stop], sizes))

        self.given_block_rows = self.block_rows
        self._write_matrix(matrices())
        return made_note(4, "degree")


def _chained(first: NDArray[Any], rest: Iterator[NDArray[Any]]) -> Iterator[NDArray[Any]]:
    yield first
    yield from rest
