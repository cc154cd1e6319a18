"""Embeddings of distinguishable classes, and splits of them."""

import numpy as np

from spgcl.datasets import Splits


def make_task(num_nodes=300, width=12, num_classes=4, *, noise=1.5, seed=0):
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, num_classes, num_nodes)
    centres = generator.normal(size=(num_classes, width))
    embeddings = centres[labels] + noise * generator.normal(size=(num_nodes, width))
    return embeddings.astype(np.float32), labels


def make_splits(num_nodes, sizes, *, seed=0):
    """One split for every (training, validation) size; the rest is the test part."""
    generator = np.random.default_rng(seed)
    masks = np.zeros((3, len(sizes), num_nodes), dtype=np.bool_)
    for split, (train, validation) in enumerate(sizes):
        order = generator.permutation(num_nodes)
        for part, nodes in enumerate(np.split(order, [train, train + validation])):
            masks[part, split, nodes] = True
    return Splits(*masks, source="test")
