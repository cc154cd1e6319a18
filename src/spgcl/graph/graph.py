"""The input of every method: an attributed graph, validated, immutable and without labels."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spgcl.errors import InputError, shown
from spgcl.graph.adjacency import adjacency_of
from spgcl.graph.checks import Features, checked_end_points, checked_features, checked_ids
from spgcl.graph.display import facts


@dataclass(frozen=True, eq=False)
class Graph:
    """An attributed graph in compressed sparse rows.

    Undirected graphs store both directions of every edge. There are no self loops and no duplicate
    entries, columns are sorted within a row, and every array is read-only. Isolated nodes are nodes.
    Build one with `Graph.of` (files and objects) or `Graph.from_edges` (arrays): both validate their input
    and copy a caller's writable arrays. The constructor takes over valid arrays as they are.

    Attributes:
        rows: Row pointers, shape (num_nodes + 1,).
        columns: Neighbours of node i are `columns[rows[i]:rows[i + 1]]`.
        features: One row per node, dense float32 or CSR.
        node_ids: The user's ids, int64 or str, in row order.
        weights: Positive edge weights aligned with `columns`, or None for an unweighted graph.
        directed: Whether `columns` holds out-neighbours only.
        notes: What was changed while reading (edges symmetrised, loops dropped ...), in words.
        feature_names: Names of the feature columns; empty where they have none.
        encoding: How features were made of a table with categories, dates or text, as plain data; or None.
    """

    rows: NDArray[np.integer[Any]]
    columns: NDArray[np.integer[Any]]
    features: Features
    node_ids: NDArray[Any]
    weights: NDArray[np.float32] | None = None
    directed: bool = False
    notes: tuple[str, ...] = ()
    feature_names: tuple[str, ...] = ()
    encoding: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.features.shape[0] != self.num_nodes or len(self.node_ids) != self.num_nodes:
            raise InputError(
                f"the adjacency describes {self.num_nodes} nodes, the features {self.features.shape[0]} "
                f"and the ids {len(self.node_ids)}"
            )
        if self.feature_names and len(self.feature_names) != self.num_features:
            raise InputError(
                f"{len(self.feature_names)} names for {self.num_features} feature columns; name all or none"
            )
        for array in (*self._arrays, self.node_ids):
            array.setflags(write=False)

    @property
    def _arrays(self) -> list[NDArray[Any]]:
        """Edges, weights and features as plain arrays."""
        features: Any = self.features
        parts = (
            [features.indptr, features.indices, features.data] if sparse.issparse(features) else [features]
        )
        return [self.rows, self.columns, *([] if self.weights is None else [self.weights]), *parts]

    @classmethod
    def of(cls, source: Any, features: Any = None, **options: Any) -> "Graph":
        """Read a graph from a file or an object: see `spgcl.io.read_graph` for sources and options."""
        # The only import against the order of the packages: `Graph.of` is the entry point to the readers.
        from spgcl.io import read_graph

        return read_graph(source, features, **options)

    @classmethod
    def from_edges(
        cls,
        sources: NDArray[Any],
        targets: NDArray[Any],
        features: Any,
        *,
        weights: NDArray[Any] | None = None,
        node_ids: NDArray[Any] | None = None,
        directed: bool = False,
        notes: Iterable[str] = (),
        feature_names: Iterable[str] = (),
    ) -> "Graph":
        """Build a graph from integer end points 0 ... num_nodes - 1 and one feature row per node.

        Self loops are dropped and repeated edges merged: their weights are added within a direction,
        and an undirected graph keeps the larger weight of two opposite directions.
        """
        features = checked_features(features)
        num_nodes = features.shape[0]
        matrix, changes = adjacency_of(sources, targets, num_nodes, weights=weights, directed=directed)
        return cls(
            rows=matrix.indptr,
            columns=matrix.indices,
            features=features,
            node_ids=np.arange(num_nodes) if node_ids is None else checked_ids(node_ids, num_nodes),
            weights=None if weights is None else matrix.data.astype(np.float32, copy=False),
            directed=directed,
            notes=(*notes, *changes),
            feature_names=tuple(feature_names),
        )

    @property
    def num_nodes(self) -> int:
        """Number of nodes, including isolated ones."""
        return len(self.rows) - 1

    @property
    def num_edges(self) -> int:
        """Number of edges: node pairs if undirected, arcs if directed."""
        return len(self.columns) if self.directed else len(self.columns) // 2

    @property
    def num_features(self) -> int:
        """Number of feature columns."""
        return int(self.features.shape[1])

    @property
    def degrees(self) -> NDArray[np.integer[Any]]:
        """Number of (out-)neighbours per node."""
        return np.diff(self.rows)

    @property
    def adjacency(self) -> sparse.csr_array:
        """The adjacency matrix as SciPy CSR, sharing this graph's arrays if it is weighted."""
        values = np.ones(len(self.columns), dtype=np.float32) if self.weights is None else self.weights
        return sparse.csr_array((values, self.columns, self.rows), shape=(self.num_nodes, self.num_nodes))

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that a method or an output depends on."""
        state = hashlib.sha256(f"{self.directed} {self.features.shape}".encode())
        # JSON distinguishes the node 1 from the node "1", and an id that contains a separator from two ids.
        ids = self.node_ids
        if ids.dtype.kind != "i":
            ids = np.frombuffer(json.dumps(ids.tolist()).encode(), np.uint8)
        for part in (*self._arrays, ids):
            state.update(f"{part.dtype} {part.shape}".encode())
            state.update(np.ascontiguousarray(part).data)
        return state.hexdigest()

    @cached_property
    def _rows_by_text(self) -> dict[str, int]:
        return {str(node): row for row, node in enumerate(self.node_ids.tolist())}

    def index_of(self, node: int | str) -> int:
        """Row of the node with this id; an integer id may be given as text."""
        row = self._rows_by_text.get(str(node))
        if row is None:
            example = self.node_ids.tolist()[0]
            raise InputError(f"no node {shown(node)} in this graph; its ids look like {shown(example)}")
        return row

    def with_features(self, features: Any, names: Iterable[str] = ()) -> "Graph":
        """The same nodes and edges with other features."""
        return replace(self, features=checked_features(features), feature_names=tuple(names), encoding=None)

    def without_edges(self, sources: NDArray[Any], targets: NDArray[Any]) -> "Graph":
        """The same nodes without the given edges (both directions when undirected)."""
        sources, targets = checked_end_points(sources, targets, self.num_nodes)
        removed = sparse.coo_array(
            (np.ones(len(sources), dtype=np.bool_), (sources, targets)), shape=(self.num_nodes,) * 2
        ).tocsr()
        if not self.directed:
            removed = removed + removed.T
        matrix = self.adjacency
        kept = matrix - matrix.multiply(removed)
        kept.eliminate_zeros()
        kept.sort_indices()
        return replace(
            self,
            rows=kept.indptr,
            columns=kept.indices,
            weights=None if self.weights is None else kept.data.astype(np.float32, copy=False),
        )

    def _repr_html_(self) -> str:
        weighted = "yes" if self.weights is not None else "no"
        directed = "yes" if self.directed else "no"
        counts = {"nodes": self.num_nodes, "edges": self.num_edges, "features": self.num_features}
        pairs = {name: f"{count:,}" for name, count in counts.items()}
        notes = {"notes": "; ".join(self.notes)} if self.notes else {}
        return facts("Graph", {**pairs, "directed": directed, "weighted": weighted, **notes})

    def __repr__(self) -> str:
        kind = "directed" if self.directed else "undirected"
        weighted = ", weighted" if self.weights is not None else ""
        sparsely = " sparse" if sparse.issparse(self.features) else ""
        return (
            f"Graph({self.num_nodes:,} nodes, {self.num_edges:,} {kind} edges{weighted}, "
            f"{self.num_features:,}{sparsely} features)"
        )
