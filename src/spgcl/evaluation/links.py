"""Link prediction: edges held out before training, and how well similarity separates them from non-edges."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spgcl.errors import InputError
from spgcl.evaluation.checks import comparable_embeddings
from spgcl.graph import Graph

_CHUNK_ROWS = 2**16


def hold_out_edges(
    graph: Graph, fraction: float, seed: int
) -> tuple[Graph, NDArray[np.int64], NDArray[np.int64]]:
    """A graph without some of its edges, these edges, and equally many node pairs that are not edges.

    Both are drawn uniformly without replacement and have shape (count, 2); undirected pairs have the smaller
    node first. No non-edge is an edge of the full graph or joins a node to itself.

    Args:
        graph: The full graph.
        fraction: Fraction of the edges to hold out, between 0 and 1.
        seed: Decides both draws.
    """
    if not 0 < fraction < 1:
        raise InputError(f"the fraction of edges to hold out is {fraction}; it must lie between 0 and 1")
    count = max(1, round(fraction * graph.num_edges))
    if count >= graph.num_edges:
        raise InputError(
            f"holding out {fraction:g} of {graph.num_edges} edges leaves none; take a smaller fraction"
        )
    edges = _edges(graph)
    generator = np.random.default_rng(seed)
    positive = edges[np.sort(generator.choice(len(edges), count, replace=False))]
    negative = _non_edges(graph, edges, count, generator)
    return graph.without_edges(positive[:, 0], positive[:, 1]), positive, negative


def _edges(graph: Graph) -> NDArray[np.int64]:
    sources = np.repeat(np.arange(graph.num_nodes), graph.degrees)
    pairs = np.column_stack([sources, graph.columns]).astype(np.int64, copy=False)
    return pairs if graph.directed else pairs[pairs[:, 0] < pairs[:, 1]]


def _non_edges(
    graph: Graph, edges: NDArray[np.int64], count: int, generator: np.random.Generator
) -> NDArray[np.int64]:
    """Distinct pairs that are not edges, by rejection sampling."""
    size = graph.num_nodes
    pairs = size * (size - 1) // (1 if graph.directed else 2)
    if pairs - len(edges) < count:
        raise InputError(f"{count} edges to hold out, but only {pairs - len(edges)} node pairs are not edges")
    # Pairs as single numbers, which are sorted because the edges and the columns of a row are.
    taken = edges[:, 0] * size + edges[:, 1]
    found = np.empty(0, dtype=np.int64)
    while len(found) < count:
        ends = generator.integers(0, size, (2 * count + 16, 2))
        if not graph.directed:
            ends.sort(axis=1)
        keys = ends[ends[:, 0] != ends[:, 1]] @ np.array([size, 1])
        indices = np.searchsorted(taken, keys).clip(max=len(taken) - 1)
        found = np.union1d(found, keys[taken[indices] != keys])
    chosen = np.sort(generator.choice(found, count, replace=False))
    return np.column_stack([chosen // size, chosen % size])


def link_scores(embeddings: Any, positive: Any, negative: Any) -> dict[str, float]:
    """How well cosine similarity separates edges from non-edges, in percent: `auc`, `average_precision`.

    Args:
        embeddings: One row per node.
        positive: Node pairs that are edges, shape (count, 2).
        negative: Node pairs that are not edges.
    """
    vectors = comparable_embeddings(embeddings)
    edges, others = (np.sort(_similarities(vectors, np.asarray(pairs))) for pairs in (positive, negative))
    # A non-edge as similar as an edge counts half for the area, and ranks above it for the precision.
    below, not_above = (np.searchsorted(others, edges, side=side) for side in ("left", "right"))
    edges_above = len(edges) - np.searchsorted(edges, edges)
    precisions = edges_above / (edges_above + len(others) - below)
    return {
        "auc": 100 * float((below + not_above).mean()) / (2 * len(others)),
        "average_precision": 100 * float(precisions.mean()),
    }


def _similarities(vectors: NDArray[np.float32], pairs: NDArray[Any]) -> NDArray[np.float32]:
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs):
        raise InputError(f"node pairs need shape (count, 2) and at least one row, not {pairs.shape}")
    if pairs.min() < 0 or pairs.max() >= len(vectors):
        raise InputError(f"node pairs refer to node {pairs.max()}, but there are {len(vectors)} embeddings")
    norms = np.linalg.norm(vectors, axis=1)
    similarities = np.empty(len(pairs), dtype=np.float32)
    for start in range(0, len(pairs), _CHUNK_ROWS):
        left, right = pairs[start : start + _CHUNK_ROWS].T
        lengths = np.maximum(norms[left] * norms[right], np.finfo(np.float32).tiny)
        products = np.einsum("nd,nd->n", vectors[left], vectors[right])
        similarities[start : start + _CHUNK_ROWS] = products / lengths
    return similarities
