"""Graphs whose transformed graphs are known, or follow classes in part."""

import numpy as np

from spgcl import Graph
from spgcl.datasets import contextual_block_model


def cliques(count, size):
    """Cliques with a feature of their own: each node's most similar nodes are those of its clique."""
    labels = np.repeat(np.arange(count), size)
    pairs = [(a, b) for a in range(count * size) for b in range(a) if labels[a] == labels[b]]
    # Rows of one clique differ a little, so that no two cosines tie.
    noise = np.random.default_rng(0).normal(size=(count * size, 24)) * 0.01
    features = noise + 5 * np.eye(count, 24)[labels]
    return Graph.from_edges(*np.array(pairs).T, features.astype(np.float32)), labels


def mixed():
    """A small graph of three classes."""
    drawn = contextual_block_model(
        num_nodes=60, num_classes=3, average_degree=6, homophily=0.6, num_features=5, signal=1.5, seed=2
    )
    return drawn.graph, drawn.labels
