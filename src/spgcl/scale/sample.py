"""Part of a graph on disk in memory, to estimate what need not be known exactly."""

import numpy as np
from numpy.typing import NDArray

from spgcl.errors import note
from spgcl.graph import Graph
from spgcl.scale.store import Store

# Nodes in the sample, and how many of them it grows from: their neighbours follow, then those of these.
NODES = 2**16
SEEDS = 2**8


def sampled_graph(store: Store, num_nodes: int | None = None, seed: int = 0) -> Graph:
    """The subgraph of nodes around random ones, with all edges among them; the whole graph if it is small."""
    num_nodes = num_nodes or NODES
    if num_nodes >= store.num_nodes:
        return store.load()
    note(f"estimated from {num_nodes:,} of {store.num_nodes:,} nodes, around {SEEDS} random ones")
    nodes = _around(store, num_nodes, np.random.default_rng(seed))
    owners, entries = entries_of(store, nodes)
    columns = store.columns[entries].astype(np.int64)
    found = np.searchsorted(nodes, columns).clip(max=num_nodes - 1)
    inside = nodes[found] == columns
    counts = np.bincount(owners[inside], minlength=num_nodes)
    return Graph(
        rows=np.concatenate([[0], np.cumsum(counts)]),
        columns=found[inside],
        features=np.array(store.features[nodes], dtype=np.float32),
        node_ids=np.arange(num_nodes),
        weights=None if store.weights is None else np.array(store.weights[entries[inside]]),
        directed=store.directed,
        feature_names=store.feature_names,
    )


def _around(store: Store, num_nodes: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Distinct nodes, ascending: whole neighbourhoods, of the last one a random part."""
    nodes = frontier = np.unique(generator.integers(0, store.num_nodes, min(SEEDS, num_nodes)))
    while len(nodes) < num_nodes:
        near = store.columns[entries_of(store, frontier)[1]].astype(np.int64)
        new = np.setdiff1d(near, nodes)
        if not len(new):
            # The components of the seeds end here; others are drawn.
            new = np.setdiff1d(generator.integers(0, store.num_nodes, num_nodes), nodes)
        frontier = np.sort(generator.permutation(new)[: num_nodes - len(nodes)])
        nodes = np.union1d(nodes, frontier)
    return nodes


def entries_of(store: Store, nodes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of every entry in the rows of some nodes, the position of the node among them and its own on disk."""
    starts = store.rows[nodes]
    counts = store.rows[nodes + 1] - starts
    owners = np.repeat(np.arange(len(nodes)), counts)
    before = np.cumsum(counts) - counts
    return owners, np.arange(len(owners)) - before[owners] + starts[owners]
