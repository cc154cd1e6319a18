"""The contextual stochastic block model of the paper's assumption: graphs of any size and homophily."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spgcl.datasets.dataset import Dataset, random_splits
from spgcl.errors import InputError
from spgcl.graph import Graph
from spgcl.graph.checks import checked_seed

# The signal is so weak that the features of its neighbourhood tell more about a node's class than its own.
_SMALL = {"num_nodes": 1500, "num_classes": 5, "average_degree": 10.0, "num_features": 64, "signal": 1.25}
BUILT_IN: dict[str, dict[str, Any]] = {
    "csbm-homophilic": {**_SMALL, "homophily": 0.8, "seed": 0},
    "csbm-heterophilic": {**_SMALL, "homophily": 0.1, "seed": 0},
}


def contextual_block_model(
    *,
    num_nodes: int,
    num_classes: int,
    average_degree: float,
    homophily: float,
    num_features: int,
    signal: float,
    seed: int,
    name: str = "csbm",
) -> Dataset:
    """A graph whose edges and features depend on the classes of the nodes alone.

    Classes have equal sizes and form a ring. Every pair of nodes within a class is joined with one
    probability, every pair of nodes of neighbouring classes with another, so that the expected average degree
    and the expected fraction of edges within classes are the given ones. With two classes this is the paper's
    model. With more, the ring gives each class a neighbourhood of its own; otherwise a heterophilic graph
    would tell nothing about classes (of four classes, opposite ones still share their neighbours).

    Args:
        num_nodes: Nodes in all classes together.
        num_classes: Two or more.
        average_degree: Expected number of neighbours of a node.
        homophily: Expected fraction of edges that join equal classes, 0 to 1.
        num_features: Width of the features.
        signal: Length of a class's mean feature vector; the noise has standard deviation 1 in every column.
        seed: Decides everything, including the ten stratified 10/10/80 splits.
        name: Name of the data set.
    """
    if num_classes < 2 or num_nodes < 10 * num_classes:
        raise InputError(f"{num_nodes} nodes in {num_classes} classes: need 2 classes and 10 nodes per class")
    if not 0 <= homophily <= 1:
        raise InputError(f"homophily {homophily} is outside 0 to 1")
    if not 0 < average_degree < num_nodes:
        raise InputError(f"average degree {average_degree} must be above 0 and below the number of nodes")
    if num_features < 1 or not 0 <= signal < np.inf:
        raise InputError(f"need at least one feature and a finite signal, not {num_features} and {signal}")
    generator = np.random.default_rng(checked_seed(seed))
    labels = generator.permutation(np.arange(num_nodes) % num_classes)
    num_edges = num_nodes * average_degree / 2
    order = np.argsort(labels, kind="stable")
    offsets = np.searchsorted(labels[order], np.arange(num_classes + 1))
    within = np.stack([np.arange(num_classes)] * 2)
    keys = [
        _draw_pairs(blocks, expected, offsets, generator)
        for blocks, expected in (
            (within, homophily * num_edges),
            (_ring(num_classes), (1 - homophily) * num_edges),
        )
    ]
    sources, targets = np.divmod(np.concatenate(keys), num_nodes)
    features = _draw_features(labels, num_features, signal, generator)
    graph = replace(Graph.from_edges(order[sources], order[targets], features), notes=())
    return Dataset(name, graph, labels, random_splits(labels, seed=seed, stratified=True))


def _ring(num_classes: int) -> NDArray[np.int64]:
    first = np.arange(num_classes if num_classes > 2 else 1)
    return np.stack([first, (first + 1) % num_classes])


def _draw_pairs(
    blocks: NDArray[np.int64], expected: float, offsets: NDArray[Any], generator: np.random.Generator
) -> NDArray[np.int64]:
    """Pairs of positions in class order, as `first * num_nodes + second`; all pairs are equally likely."""
    sizes, num_nodes = np.diff(offsets), int(offsets[-1])
    same = blocks[0] == blocks[1]
    counts = np.where(
        same, sizes[blocks[0]] * (sizes[blocks[0]] - 1) // 2, sizes[blocks[0]] * sizes[blocks[1]]
    )
    probability = expected / counts.sum()
    if probability > 0.5:
        raise InputError(
            f"edges would have probability {probability:.2f}, above 0.5: use more nodes or a lower degree"
        )
    # As if every pair were drawn independently: a binomial number of edges, and then any set of so many
    # pairs.
    missing = int(generator.binomial(counts.sum(), probability))
    keys = np.empty(0, dtype=np.int64)
    while missing:
        chosen = blocks[:, generator.choice(len(counts), size=missing, p=counts / counts.sum())]
        same_block = chosen[0] == chosen[1]
        first = generator.integers(sizes[chosen[0]])
        second = generator.integers(sizes[chosen[1]] - same_block)
        second += same_block & (second >= first)
        one, other = offsets[chosen[0]] + first, offsets[chosen[1]] + second
        drawn = np.minimum(one, other) * num_nodes + np.maximum(one, other)
        before = len(keys)
        # For tens of millions of keys, sorting is several times faster than the hash table of `numpy.unique`.
        keys = np.concatenate([keys, drawn])
        keys.sort()
        keys = keys[np.concatenate([[True], keys[1:] != keys[:-1]])]
        missing -= len(keys) - before
    return keys


def _draw_features(
    labels: NDArray[np.int64], num_features: int, signal: float, generator: np.random.Generator
) -> NDArray[np.float32]:
    means = generator.standard_normal((int(labels.max()) + 1, num_features))
    # Centred, the means of two classes are +mu and -mu, as in the paper.
    means -= means.mean(axis=0)
    means *= signal / np.linalg.norm(means, axis=1, keepdims=True)
    noise = generator.standard_normal((len(labels), num_features), dtype=np.float32)
    noise += means.astype(np.float32)[labels]
    return noise
