"""Small random graphs and generators that most tests start from."""

import numpy as np
import torch
from scipy import sparse

from spgcl import Graph

CPU = torch.device("cpu")


def make_graph(
    num_nodes=40,
    num_features=6,
    *,
    num_edges=90,
    directed=False,
    weighted=False,
    sparse_features=False,
    uneven=False,
    seed=0,
):
    """A random graph whose last node is isolated; `uneven` gives rows of features different lengths."""
    generator = np.random.default_rng(seed)
    ends = generator.integers(0, num_nodes - 1, (2, num_edges))
    features = generator.normal(size=(num_nodes, num_features)).astype(np.float32)
    if uneven:
        features *= generator.uniform(0.2, 5, (num_nodes, 1)).astype(np.float32)
    if sparse_features:
        # Below the density from which features are kept dense.
        features = sparse.csr_array(features * (generator.random(features.shape) < 0.07))
    weights = generator.uniform(0.5, 2, num_edges) if weighted else None
    return Graph.from_edges(*ends, features, weights=weights, directed=directed)


def seeded(seed=7):
    return torch.Generator().manual_seed(seed)
