"""The transformed graph: every node joined to the nodes with the most similar smoothed features."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spgcl.errors import InputError
from spgcl.evaluation.checks import checked_labels
from spgcl.graph import Graph
from spgcl.graph.propagate import normalised_adjacency, smooth

_EXACT_NODES = 20_000
_BLOCK_BYTES = 64 * 2**20
# A multiplication in a sparse product takes about as long as so many in a dense one.
_SPARSE_COST = 40


@dataclass(frozen=True)
class TransformedHomophily:
    """Homophily of the graph that joins every node to its most similar nodes, and how it was computed.

    Attributes:
        anchors: How many nodes were joined to their most similar nodes.
        sampled: Whether the anchors are a sample; otherwise they are all nodes that can be compared.
    """

    homophily: float
    anchors: int
    positives: int
    hops: int
    sampled: bool


def transformed_homophily(
    graph: Graph, labels: Any, *, positives: int = 5, hops: int = 2, seed: int = 0
) -> TransformedHomophily:
    """Edge homophily of the graph that joins each node to its most cosine-similar other nodes.

    Similarities are exact and computed in blocks of anchors. Above 20,000 nodes the anchors are a seeded
    sample, so that the number of compared pairs stays constant. Nodes without a label, or with only zeros
    after smoothing, are not used as anchors.

    Args:
        graph: The graph whose smoothed features are compared.
        labels: One class per node.
        positives: How many most similar nodes each anchor is joined to, K_pos in the paper.
        hops: How often features are smoothed before the comparison.
        seed: Decides the sample.
    """
    values = checked_labels(labels, graph.num_nodes)
    if not 1 <= positives < graph.num_nodes:
        raise InputError(
            f"positives is {positives}; a graph of {graph.num_nodes} nodes needs 1 to {graph.num_nodes - 1}"
        )
    smoothed = _Smoothed.of(graph, hops)
    anchors = np.flatnonzero((values >= 0) & (smoothed.norms > 0))
    limit = max(1, _EXACT_NODES**2 // graph.num_nodes) if graph.num_nodes > _EXACT_NODES else len(anchors)
    sampled = len(anchors) > limit
    if sampled:
        anchors = np.sort(np.random.default_rng(seed).choice(anchors, limit, replace=False))
    same = pairs = 0
    for block in _blocks(anchors, graph.num_nodes):
        other = values[smoothed.most_similar(block, positives)]
        same += int(np.count_nonzero(other == values[block, None]))
        pairs += int(np.count_nonzero(other >= 0))
    return TransformedHomophily(same / max(pairs, 1), len(anchors), positives, hops, sampled)


@dataclass(frozen=True)
class _Smoothed:
    """Smoothed features Z = S^h X, multiplied out only if that makes comparisons cheaper.

    The similarities of a block B of rows are Z Z_B^T = S^h (X Z_B^T). With few entries in X and S, the right
    side is far less work than the left with its dense Z, and Z is not stored.
    """

    matrix: sparse.csr_array
    hops: int
    features: Any
    norms: NDArray[np.float32]

    @classmethod
    def of(cls, graph: Graph, hops: int) -> "_Smoothed":
        matrix = normalised_adjacency(graph)
        features: Any = graph.features
        work = _SPARSE_COST * (hops * matrix.nnz + features.nnz) if sparse.issparse(features) else np.inf
        if work > graph.num_nodes * graph.num_features:
            smoothed: Any = smooth(graph, hops)
            dense = smoothed.toarray() if sparse.issparse(smoothed) else smoothed
            return cls(matrix, 0, dense, np.linalg.norm(dense, axis=1))
        product = cls(matrix, hops, features, np.empty(graph.num_nodes, dtype=np.float32))
        for block in _blocks(np.arange(graph.num_nodes), graph.num_features):
            product.norms[block] = np.linalg.norm(product.rows(block), axis=1)
        return product

    def rows(self, nodes: NDArray[np.int64]) -> NDArray[np.float32]:
        """Dense smoothed features of a few nodes."""
        if not self.hops:
            chosen = self.features[nodes]
            return np.asarray(chosen.toarray() if sparse.issparse(chosen) else chosen)
        left = self.matrix[nodes]
        for _ in range(self.hops - 1):
            left = left @ self.matrix
        return np.asarray((left @ self.features).toarray(), dtype=np.float32)

    def most_similar(self, nodes: NDArray[np.int64], count: int) -> NDArray[np.int64]:
        """The `count` most cosine-similar other nodes of each of a few nodes, shape (nodes, count)."""
        import torch

        products = self.features @ np.ascontiguousarray(self.rows(nodes).T)
        for _ in range(self.hops):
            products = self.matrix @ products
        # The norm of the anchor does not change the order.
        products /= np.maximum(self.norms, np.finfo(np.float32).tiny)[:, None]
        products[nodes, np.arange(len(nodes))] = -np.inf
        return np.asarray(torch.from_numpy(products).T.contiguous().topk(count, dim=1).indices.numpy())


def _blocks(nodes: NDArray[np.int64], width: int) -> list[NDArray[np.int64]]:
    """Nodes in blocks for which a dense float32 matrix of `width` columns stays small."""
    size = max(1, _BLOCK_BYTES // (4 * width))
    return [nodes[start : start + size] for start in range(0, len(nodes), size)]
