"""A graph on disk: memory-mapped rows, columns, weights and features, ids, checksums, a format version."""

import hashlib
import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spgcl import __version__
from spgcl.errors import InputError
from spgcl.graph import Graph
from spgcl.graph.propagate import propagation_scales
from spgcl.scale.arrays import Description, DiskArray, row_bounds, write_json

# Increased when earlier versions of the package cannot read a store.
FORMAT = 1
MANIFEST = "store.json"
# The bytes that a graph in memory takes for each of its own while a method prepares it.
_IN_MEMORY = 4


@dataclass(frozen=True, eq=False)
class Store:
    """A graph on disk, its arrays read through memory maps.

    It has the rows, columns, weights and features of a `spgcl.graph.Graph` under the same names; what works
    on blocks of rows takes either.

    Attributes:
        block_rows: Nodes per block.
        ids: "rows" if node ids are 0 ... num_nodes - 1, "numbers", or "text".
        arrays: What the file of every array must hold.
        digest: SHA-256 of the manifest, which has the checksum of every block.
    """

    folder: Path
    num_nodes: int
    directed: bool
    block_rows: int
    ids: str
    notes: tuple[str, ...]
    feature_names: tuple[str, ...]
    arrays: dict[str, DiskArray]
    digest: str
    spgcl: str = field(default=__version__)

    @property
    def encoding(self) -> None:
        """Features are kept as they are: tables of categories, dates and text need memory."""

    @property
    def rows(self) -> NDArray[np.int64]:
        """Row pointers."""
        return self.arrays["rows"].mapped

    @property
    def columns(self) -> NDArray[Any]:
        """Neighbours, ascending within a row."""
        return self.arrays["columns"].mapped

    @property
    def diagonal(self) -> NDArray[Any]:
        """How many neighbours of a node come before itself: its position in its own row of A + I."""
        return self.arrays["diagonal"].mapped

    @property
    def weights(self) -> NDArray[np.float32] | None:
        """Edge weights aligned with `columns`, or None."""
        return self.arrays["weights"].mapped if "weights" in self.arrays else None

    @property
    def features(self) -> NDArray[Any]:
        """One row per node, float32 or float16."""
        return self.arrays["features"].mapped

    @property
    def num_features(self) -> int:
        """Number of feature columns."""
        return self.arrays["features"].described.shape[1]

    @property
    def num_entries(self) -> int:
        """Number of columns stored: two per undirected edge."""
        return self.arrays["columns"].described.shape[0]

    @property
    def num_edges(self) -> int:
        """Number of edges: node pairs if undirected, arcs if directed."""
        return self.num_entries if self.directed else self.num_entries // 2

    @property
    def bytes(self) -> int:
        """Size of all arrays."""
        return sum(array.described.bytes for array in self.arrays.values())

    @cached_property
    def bounds(self) -> list[tuple[int, int]]:
        """First and last node of every block."""
        return row_bounds(self.num_nodes, self.block_rows)

    @cached_property
    def scales(self) -> NDArray[np.float64]:
        """See `spgcl.graph.propagate.propagation_scales`."""
        return propagation_scales(self, self.bounds)

    def in_memory_bytes(self) -> int:
        """About what a method needs to prepare this graph in memory."""
        return _IN_MEMORY * (12 * self.num_entries + 4 * self.num_nodes * self.num_features)

    def verify(self) -> None:
        """Compare every block of every array with its checksum."""
        blocks = {"rows": [(0, self.num_nodes + 1)], "ends": [(0, self.num_nodes + 1)]}
        blocks |= {"columns": self._cut_by(self.rows), "weights": self._cut_by(self.rows)}
        if self.ids == "text":
            blocks["text"] = self._cut_by(self.arrays["ends"].mapped)
        for name, array in self.arrays.items():
            array.verify(blocks.get(name, self.bounds))

    def _cut_by(self, pointers: NDArray[Any]) -> list[tuple[int, int]]:
        """First and last entry of every block of rows."""
        return [(int(pointers[start]), int(pointers[stop])) for start, stop in self.bounds]

    def load(self) -> Graph:
        """The graph in memory, as reading its files without a store would give it."""
        self.verify()
        return Graph(
            rows=np.array(self.rows),
            columns=np.array(self.columns, dtype=np.int64),
            features=np.array(self.features, dtype=np.float32),
            node_ids=self.node_ids,
            weights=None if self.weights is None else np.array(self.weights),
            directed=self.directed,
            notes=self.notes,
            feature_names=self.feature_names,
        )

    @cached_property
    def node_ids(self) -> NDArray[Any]:
        """The ids of all nodes, int64 or str objects."""
        from spgcl.io.arrow import from_arrow

        return from_arrow(self.ids_of(0, self.num_nodes))

    def ids_of(self, start: int, stop: int) -> Any:
        """The ids of some consecutive nodes as an Arrow array."""
        import pyarrow as pa

        from spgcl.io.arrow import to_arrow

        if self.ids != "text":
            numbers = (
                np.arange(start, stop) if self.ids == "rows" else self.arrays["nodes"].mapped[start:stop]
            )
            return to_arrow(np.array(numbers))
        ends = np.array(self.arrays["ends"].mapped[start : stop + 1])
        text = np.array(self.arrays["text"].mapped[ends[0] : ends[-1]])
        parts = [None, pa.py_buffer(ends - ends[0]), pa.py_buffer(text)]
        return pa.Array.from_buffers(pa.large_string(), stop - start, parts)

    def __repr__(self) -> str:
        kind = "directed" if self.directed else "undirected"
        return f"Store({self.folder}: {self.num_nodes:,} nodes, {self.num_edges:,} {kind} edges)"


def is_store(path: str | Path) -> bool:
    """Whether a path is the folder of a store."""
    return (Path(path) / MANIFEST).is_file()


def open_store(folder: str | Path) -> Store:
    """Open a store; the sizes of its files are checked now, their checksums when they are used."""
    folder = Path(folder)
    record = _manifest(folder)
    try:
        arrays = {
            name: DiskArray(folder / f"{name}.npy", Description.of(described))
            for name, described in record["arrays"].items()
        }
        return Store(
            folder=folder,
            num_nodes=int(record["num_nodes"]),
            directed=bool(record["directed"]),
            block_rows=int(record["block_rows"]),
            ids=str(record["ids"]),
            notes=tuple(record["notes"]),
            feature_names=tuple(record["feature_names"]),
            arrays=arrays,
            digest=hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest(),
            spgcl=str(record["spgcl"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{folder / MANIFEST} is damaged ({error!r}); ingest the graph again") from None


def _manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{folder} is not a store: it has no {MANIFEST} (spgcl ingest writes one)") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is damaged ({error}); ingest the graph again") from None
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        written = record.get("spgcl", "unknown") if isinstance(record, dict) else "unknown"
        found = record.get("format") if isinstance(record, dict) else None
        raise InputError(
            f"{path} has format {found} (spgcl {written}), and spgcl {__version__} reads {FORMAT}; "
            "use that version or ingest the graph again"
        )
    return record


def write_manifest(folder: Path, arrays: dict[str, Description], **values: Any) -> None:
    """Describe a store; written last, so that a folder with it is complete."""
    record = {
        "format": FORMAT,
        "spgcl": __version__,
        **values,
        "arrays": {name: described.record() for name, described in arrays.items()},
    }
    write_json(folder / MANIFEST, record)
