"""NetworkX graphs, in memory or from files that it reads."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spgcl.errors import InputError, unknown
from spgcl.graph.checks import checked_ids
from spgcl.io.draft import NO_WEIGHTS, Draft
from spgcl.io.opening import opening, read_bytes

_KINDS = {
    ".graphml": "GraphML file",
    ".gml": "GML file",
    ".gexf": "GEXF file",
    ".json": "node-link JSON file",
    ".edgelist": "edge list of NetworkX",
}


def read_network(path: Path, suffix: str) -> Any:
    """The NetworkX graph of a GraphML, GML, GEXF, node-link JSON or edge list file, by its suffix.

    If all ids are integers, they become numbers.
    """
    try:
        import networkx
    except ImportError:
        raise InputError(f"{path}: {suffix} is read by NetworkX; pip install 'spgcl[formats]'") from None
    with opening(path, _KINDS[suffix]):
        if suffix == ".json":
            network = _node_link(networkx, json.loads(read_bytes(path).decode("utf-8")))
        elif suffix == ".gml":
            network = networkx.read_gml(path, label=_gml_label(path))
        elif suffix == ".gexf":
            network = networkx.read_gexf(path)
        elif suffix == ".edgelist":
            network = networkx.read_edgelist(path)
        else:
            network = networkx.read_graphml(path)
        names = list(network.nodes)
        if all(isinstance(name, str) and _is_whole(name) for name in names):
            return networkx.relabel_nodes(network, {name: int(name) for name in names})
        return network


def _is_whole(name: str) -> bool:
    return name.removeprefix("-").isdecimal() and str(int(name)) == name


def _gml_label(path: Path) -> str:
    """What names the nodes of a GML file: labels, or ids where there are none."""
    return "label" if b"label" in read_bytes(path) else "id"


def _node_link(networkx: Any, record: Any) -> Any:
    """A graph as `networkx.node_link_data` and D3 write it: `nodes`, and `links` or `edges`."""
    ends = next((name for name in ("edges", "links") if isinstance(record, dict) and name in record), None)
    if ends is None or "nodes" not in record:
        raise InputError("expected an object with 'nodes' and 'links' (or 'edges'), as NetworkX writes it")
    return networkx.node_link_graph(record, edges=ends)


def from_networkx(
    network: Any, *, attributes: Sequence[str] | None, weight: str | None, directed: bool
) -> Draft:
    """A NetworkX graph of any kind; node ids are kept, as integers or else as text.

    Args:
        network: Graph, DiGraph, MultiGraph or MultiDiGraph.
        attributes: Node attributes that make the features, numbers or vectors.
        weight: Edge attribute with the weights, by default `weight` if the edges have it; "none": no weights.
        directed: Whether the caller asks for a directed graph, which an undirected network cannot give.
    """
    if directed and not network.is_directed():
        raise InputError("this NetworkX graph is undirected; leave directed out or pass a DiGraph")
    nodes = list(network.nodes)
    if not nodes:
        raise InputError("the graph has no nodes")
    numbers = {node: position for position, node in enumerate(nodes)}
    records = [(numbers[start], numbers[end], data) for start, end, data in network.edges(data=True)]
    notes: list[str] = []
    values = _edge_weights(records, nodes, weight, notes)
    ends = np.array([(start, end) for start, end, _ in records], dtype=np.int64).reshape(-1, 2)
    if not network.is_directed():
        ends, values = _both_ways(ends, values, notes)
    known = {name for _, data in network.nodes(data=True) for name in data}
    features, names = (None, ()) if attributes is None else _attribute_matrix(network, attributes, known)
    return Draft(
        ends[:, 0],
        ends[:, 1],
        _node_ids(nodes),
        features=features,
        feature_names=names,
        attributes=tuple(sorted(map(str, known))),
        weights=values,
        notes=tuple(notes),
    )


def _node_ids(nodes: list[Any]) -> NDArray[Any]:
    whole = all(isinstance(node, int | np.integer) and not isinstance(node, bool) for node in nodes)
    if whole and all(-(2**63) <= node < 2**63 for node in nodes):
        return np.array(nodes, dtype=np.int64)
    texts = np.empty(len(nodes), dtype=object)
    texts[:] = [str(node) for node in nodes]
    return checked_ids(texts, len(nodes))


def _both_ways(
    ends: NDArray[np.int64], values: NDArray[Any] | None, notes: list[str]
) -> tuple[NDArray[np.int64], NDArray[Any] | None]:
    """Every undirected edge once in each direction, parallel ones merged by adding their weights."""
    pairs, index = np.unique(np.sort(ends, axis=1), axis=0, return_inverse=True)
    if len(pairs) < len(ends):
        notes.append(f"{len(ends) - len(pairs):,} parallel edges merged")
    if values is not None:
        values = np.bincount(index.reshape(-1), weights=values, minlength=len(pairs))
        values = np.concatenate([values, values])
    return np.concatenate([pairs, pairs[:, ::-1]]), values


def _edge_weights(
    records: list[tuple[int, int, dict[str, Any]]], nodes: list[Any], weight: str | None, notes: list[str]
) -> NDArray[Any] | None:
    names = {name for _, _, data in records for name in data}
    if weight not in (None, NO_WEIGHTS, *names):
        raise unknown("edge attribute", str(weight), [*sorted(map(str, names)), NO_WEIGHTS])
    chosen = weight or "weight"
    ignored = sorted(str(name) for name in names if name != chosen or weight == NO_WEIGHTS)
    if ignored:
        notes.append(f"edge attributes ignored: {', '.join(ignored)}")
    if chosen not in names or weight == NO_WEIGHTS:
        return None
    notes.append(f"edge attribute {chosen!r} used as edge weights; --weight none ignores them")
    return np.array(
        [_edge_weight(data.get(chosen), nodes[start], nodes[end]) for start, end, data in records]
    )


def _edge_weight(value: Any, start: Any, end: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = float("nan")
    if not 0 < number < float("inf"):
        raise InputError(
            f"edge ({start!r}, {end!r}) has weight {value!r}, which is not a positive number; fix it, or "
            "ignore all weights (--weight none)"
        )
    return number


def _attribute_matrix(
    network: Any, attributes: Sequence[str], known: set[Any]
) -> tuple[NDArray[np.float32], tuple[str, ...]]:
    """The attributes side by side, and one name per column."""
    if isinstance(attributes, str):
        attributes = [attributes]
    for name in attributes:
        if name not in known:
            raise unknown("node attribute", str(name), sorted(map(str, known)))
    blocks = [_attribute_block(network.nodes(data=True), name) for name in attributes]
    names = [
        str(name) if block.shape[1] == 1 else f"{name}[{column}]"
        for name, block in zip(attributes, blocks, strict=True)
        for column in range(block.shape[1])
    ]
    matrix = np.hstack(blocks) if blocks else np.empty((len(network), 0), dtype=np.float32)
    return matrix, tuple(names)


def _attribute_block(records: Iterable[tuple[Any, dict[str, Any]]], name: str) -> NDArray[np.float32]:
    rows: list[NDArray[Any]] = []
    for node, data in records:
        rows.append(_number_row(node, name, data.get(name)))
        if len(rows[-1]) != len(rows[0]):
            raise InputError(
                f"node {node!r}: {name!r} has {len(rows[-1])} numbers, but {len(rows[0])} at the nodes before"
            )
    return np.stack(rows)


def _number_row(node: Any, name: str, value: Any) -> NDArray[Any]:
    try:
        row = np.atleast_1d(np.asarray(value))
    except ValueError:
        row = np.array(["ragged"])
    if row.ndim != 1 or row.dtype.kind not in "biuf" or not np.isfinite(row).all():
        raise InputError(
            f"node {node!r}: {name}={value!r} is not a finite number or vector; fix it, encode categories as "
            f"0/1, or leave {name!r} out"
        )
    with np.errstate(over="ignore"):
        return row.astype(np.float32)
