"""The one thing every method reads: an attributed graph, validated, immutable and without labels."""

import hashlib
import json
from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spgcl.errors import InputError

Features: TypeAlias = NDArray[np.float32] | sparse.csr_array


@dataclass(frozen=True, eq=False)
class Graph:
    """An attributed graph in compressed sparse rows.

    Undirected graphs store both directions of every edge. There are no self loops and no duplicate
    entries, columns are sorted within a row, and every array is read-only. Isolated nodes are nodes.
    Build one with `Graph.of` (anything a user has) or `Graph.from_edges` (arrays): both check what they
    are given and copy a caller's writable arrays; the constructor takes valid arrays over as they are.

    Attributes:
        rows: Row pointers, shape (num_nodes + 1,).
        columns: Neighbours of node i are `columns[rows[i]:rows[i + 1]]`.
        features: One row a node, dense float32 or CSR.
        node_ids: The user's own ids, int64 or str, in row order.
        weights: Positive edge weights aligned with `columns`, or None for an unweighted graph.
        directed: Whether `columns` holds out-neighbours only.
        notes: What was changed on the way in (edges symmetrised, loops dropped ...), for people.
        feature_names: Names of the feature columns; empty where they have none.
    """

    rows: NDArray[np.integer[Any]]
    columns: NDArray[np.integer[Any]]
    features: Features
    node_ids: NDArray[Any]
    weights: NDArray[np.float32] | None = None
    directed: bool = False
    notes: tuple[str, ...] = ()
    feature_names: tuple[str, ...] = ()

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
        """Read a graph from what a user has: see `spgcl.io.read_graph` for sources and options."""
        # The only import that points down the house: the front door has to know its readers.
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
        """Build a graph from integer end points 0 ... num_nodes - 1 and one feature row a node.

        Self loops are dropped and repeated edges merged: their weights are added within a direction,
        and of two opposite directions an undirected graph keeps the larger.
        """
        features = checked_features(features)
        num_nodes = features.shape[0]
        sources, targets = checked_end_points(sources, targets, num_nodes)
        if weights is not None:
            weights = checked_weights(weights, len(sources))
        said = list(notes)
        loops = sources == targets
        if loops.any():
            said.append(f"{np.count_nonzero(loops):,} self loops dropped")
            sources, targets = sources[~loops], targets[~loops]
            weights = None if weights is None else weights[~loops]
        if not len(sources):
            raise InputError("the graph has no edges (self loops aside); methods here need at least one")
        values = np.ones(len(sources), dtype=np.bool_) if weights is None else weights
        matrix = sparse.coo_array((values, (sources, targets)), shape=(num_nodes, num_nodes)).tocsr()
        if matrix.nnz < len(sources):
            said.append(f"{len(sources) - matrix.nnz:,} repeated edges merged")
            if weights is not None and not np.isfinite(matrix.data).all():
                raise InputError(
                    "the weights of a repeated edge add up to more than float32 holds; rescale them"
                )
        if not directed:
            matrix = _symmetrise(matrix, said)
        matrix.sort_indices()
        return cls(
            rows=matrix.indptr,
            columns=matrix.indices,
            features=features,
            node_ids=np.arange(num_nodes) if node_ids is None else checked_ids(node_ids, num_nodes),
            weights=None if weights is None else matrix.data.astype(np.float32, copy=False),
            directed=directed,
            notes=tuple(said),
            feature_names=tuple(feature_names),
        )

    @property
    def num_nodes(self) -> int:
        """How many nodes, isolated ones included."""
        return len(self.rows) - 1

    @property
    def num_edges(self) -> int:
        """How many edges: node pairs when undirected, arcs when directed."""
        return len(self.columns) if self.directed else len(self.columns) // 2

    @property
    def num_features(self) -> int:
        """Width of the feature matrix."""
        return int(self.features.shape[1])

    @property
    def degrees(self) -> NDArray[np.integer[Any]]:
        """Number of (out-)neighbours of every node."""
        return np.diff(self.rows)

    @property
    def adjacency(self) -> sparse.csr_array:
        """The adjacency matrix as SciPy CSR, sharing this graph's arrays where it is weighted."""
        values = np.ones(len(self.columns), dtype=np.float32) if self.weights is None else self.weights
        return sparse.csr_array((values, self.columns, self.rows), shape=(self.num_nodes, self.num_nodes))

    @cached_property
    def digest(self) -> str:
        """SHA-256 over everything that a method or an output depends on."""
        state = hashlib.sha256(f"{self.directed} {self.features.shape}".encode())
        # JSON tells the node 1 from the node "1" and one id with a separator in it from two ids.
        ids = self.node_ids
        if ids.dtype.kind != "i":
            ids = np.frombuffer(json.dumps(ids.tolist()).encode(), np.uint8)
        for part in (*self._arrays, ids):
            state.update(f"{part.dtype} {part.shape}".encode())
            state.update(np.ascontiguousarray(part).data)
        return state.hexdigest()

    @cached_property
    def _positions(self) -> dict[Hashable, int]:
        return {node: position for position, node in enumerate(self.node_ids.tolist())}

    def index_of(self, node: int | str) -> int:
        """Row of a node given by its own id; text is accepted for integer ids."""
        key: Hashable = node
        if self.node_ids.dtype.kind in "iu" and isinstance(node, str):
            try:
                key = int(node)
            except ValueError:
                key = node
        if key not in self._positions:
            raise InputError(
                f"no node {node!r} in this graph; its ids look like {self.node_ids.tolist()[0]!r}"
            )
        return self._positions[key]

    def with_features(self, features: Any, names: Iterable[str] = ()) -> "Graph":
        """The same nodes and edges with other features."""
        return replace(self, features=checked_features(features), feature_names=tuple(names))

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

    def __repr__(self) -> str:
        kind = "directed" if self.directed else "undirected"
        weighted = ", weighted" if self.weights is not None else ""
        sparsely = " sparse" if sparse.issparse(self.features) else ""
        return (
            f"Graph({self.num_nodes:,} nodes, {self.num_edges:,} {kind} edges{weighted}, "
            f"{self.num_features:,}{sparsely} features)"
        )


def _symmetrise(matrix: sparse.csr_array, said: list[str]) -> sparse.csr_array:
    backward = matrix.T.tocsr()
    both = matrix + backward if matrix.dtype == np.bool_ else matrix.maximum(backward)
    one_way = both.nnz - matrix.nnz
    if one_way:
        said.append(
            f"{one_way:,} edges listed one way only now go both ways (directed=True or --directed keeps them)"
        )
    return both


def checked_features(features: Any) -> Features:
    """Features as float32, dense or CSR, or an error that names the node and column that is not finite.

    A caller's writable arrays are copied, so that neither changes the other's; read-only ones are shared.
    """
    matrix = _checked_sparse(features) if sparse.issparse(features) else _checked_dense(features)
    if not matrix.shape[0]:
        raise InputError("the graph has no nodes")
    if not matrix.shape[1]:
        raise InputError(
            "the features have no columns; choose structural ones (--structural degree|spectral)"
        )
    return matrix


def _checked_sparse(features: Any) -> sparse.csr_array:
    if features.ndim != 2:
        raise InputError(f"features need two dimensions (nodes x columns), not shape {features.shape}")
    if features.dtype.kind not in "biuf":
        raise InputError(f"features must be numbers, not {features.dtype}")
    try:
        with np.errstate(over="ignore"):
            matrix = sparse.csr_array(features, dtype=np.float32)
        matrix.check_format(full_check=True)
    except ValueError as error:
        raise InputError(f"features are not a valid sparse matrix: {error}") from None
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    finite = np.isfinite(matrix.data)
    if not finite.all():
        place = int(np.argmin(finite))
        row = int(np.searchsorted(matrix.indptr, place, side="right")) - 1
        raise _not_finite(matrix.data[place], row, int(matrix.indices[place]))
    if features.format != "csr":
        return matrix
    parts = [(getattr(matrix, name), getattr(features, name)) for name in ("data", "indices", "indptr")]
    return matrix.copy() if any(_shared(mine, theirs) for mine, theirs in parts) else matrix


def _checked_dense(features: Any) -> NDArray[np.float32]:
    try:
        given = np.asarray(features)
        if given.dtype.kind not in "biufO":
            raise InputError(f"features must be numbers, not {given.dtype}")
        with np.errstate(over="ignore"):
            matrix = np.ascontiguousarray(given, dtype=np.float32)
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"features must be a numeric matrix: {error}") from None
    if given.ndim != 2:
        raise InputError(f"features need two dimensions (nodes x columns), not shape {given.shape}")
    # A sum is finite only if every entry is (barring overflow, which the second look settles).
    with np.errstate(invalid="ignore"):
        total = matrix.sum(dtype=np.float64)
    if not np.isfinite(total) and not np.isfinite(matrix).all():
        row, column = np.argwhere(~np.isfinite(matrix))[0].tolist()
        raise _not_finite(matrix[row, column], row, column)
    return matrix.copy() if _shared(matrix, given) else matrix


def _shared(mine: NDArray[Any], theirs: NDArray[Any]) -> bool:
    # Freezing or keeping an array that its owner can still write to would surprise one of the two.
    return bool(theirs.flags.writeable and np.may_share_memory(mine, theirs))


def _not_finite(value: Any, row: int, column: int) -> InputError:
    return InputError(f"feature row {row}, column {column} is {value}; features must be finite numbers")


def checked_end_points(
    sources: NDArray[Any], targets: NDArray[Any], num_nodes: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Edge end points as integer arrays within 0 ... num_nodes - 1."""
    try:
        sources, targets = np.asarray(sources), np.asarray(targets)
    except ValueError as error:
        raise InputError(f"edges need integer end points in one dimension: {error}") from None
    for ends in (sources, targets):
        if ends.ndim != 1 or (ends.dtype.kind not in "iu" and len(ends)):
            raise InputError(f"edges need integer end points in one dimension, not {ends.dtype} {ends.shape}")
    if len(sources) != len(targets):
        raise InputError(f"edges have {len(sources)} sources but {len(targets)} targets")
    if len(sources):
        low, top = min(sources.min(), targets.min()), max(sources.max(), targets.max())
        if low < 0:
            raise InputError(f"edges refer to node {low}; node numbers start at 0")
        if top >= num_nodes:
            known = f"{num_nodes} nodes (0 to {num_nodes - 1})"
            raise InputError(f"edges refer to node {top}, but the features describe {known}")
    return sources.astype(np.int64, copy=False), targets.astype(np.int64, copy=False)


def checked_weights(weights: NDArray[Any], num_entries: int) -> NDArray[np.float32]:
    """Edge weights as positive, finite float32."""
    try:
        given = np.asarray(weights)
        with np.errstate(over="ignore"):
            weights = np.asarray(given.real, dtype=np.float32)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"edge weights must be numbers: {error}") from None
    if given.dtype.kind == "c":
        raise InputError("edge weights must be real numbers, not complex ones")
    if weights.shape != (num_entries,):
        raise InputError(f"{num_entries} edges but weights of shape {weights.shape}")
    bad = ~(np.isfinite(weights) & (weights > 0))
    if bad.any():
        entry = int(np.flatnonzero(bad)[0])
        raise InputError(
            f"edge {entry} has weight {weights[entry]}; weights must be positive: drop the edge or rescale"
        )
    return weights


def checked_ids(node_ids: NDArray[Any], num_nodes: int) -> NDArray[Any]:
    """Node ids as int64 or str objects, one a node, all different."""
    try:
        ids = np.asarray(node_ids)
    except ValueError as error:
        raise InputError(f"node ids must be one integer or text a node: {error}") from None
    if ids.shape != (num_nodes,):
        raise InputError(f"{num_nodes} nodes but node ids of shape {ids.shape}")
    # Unsigned ids above the int64 range would wrap around: they are kept as text.
    if ids.dtype.kind == "i" or (ids.dtype.kind == "u" and (not num_nodes or ids.max() < 2**63)):
        ids = ids.astype(np.int64)
    else:
        ids = np.array([str(node) for node in ids.tolist()], dtype=object)
    listed = ids.tolist()
    if len(set(listed)) < num_nodes:
        repeated, count = Counter(listed).most_common(1)[0]
        raise InputError(f"node id {repeated!r} appears {count} times; ids must be unique")
    return ids
