"""Split-half agreement: do channels look alike when computed from other columns and other edges?"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from spgcl.engine.tensors import GraphTensors, SparseMatrix
from spgcl.graph import Graph
from spgcl.methods.parts.channels import Surroundings, dense

# Nodes whose similarities are compared, and columns to which a random projection reduces a half.
COMPARED = 2000
SKETCHED = 256
REPEATS = 5
# Below these, halves of a graph are not worth comparing.
LEAST_NODES, LEAST_COLUMNS = 20, 4

# The channels of a graph: matrices with one row per node.
Channels = Callable[[Graph], Sequence[Tensor]]


def channels_on(device: torch.device) -> Channels:
    """The channels of `spgcl.methods.parts.channels`, with degrees described by the graph's own centres."""

    def channels(graph: Graph) -> Sequence[Tensor]:
        tensors = GraphTensors.of(graph, device)
        around = Surroundings.of(graph, tensors)
        centres = around.degree_centres()
        features = _sketch(tensors.features)
        return list(around.channels(features, centres, around.degrees(centres).mean(dim=0)))

    return channels


def halves(graph: Graph, generator: np.random.Generator) -> tuple[Graph, Graph]:
    """Two graphs on the same nodes, each with half of the edges, and zeros in half of the feature columns."""
    sources = np.repeat(np.arange(graph.num_nodes), np.diff(graph.rows))
    edges = np.flatnonzero(graph.directed | (sources < graph.columns))
    order, columns = generator.permutation(edges), generator.permutation(graph.num_features)
    made = []
    for left_out, emptied in zip(np.array_split(order, 2), np.array_split(columns, 2), strict=True):
        kept = np.ones(graph.num_features, dtype=np.float32)
        kept[emptied] = 0
        half = graph.without_edges(sources[left_out], graph.columns[left_out])
        made.append(half.with_features(graph.features @ sparse.diags_array(kept)))
    first, second = made
    return first, second


def agreements(graph: Graph, channels: Channels, *, repeats: int, seed: int) -> NDArray[np.float64]:
    """Unbiased CKA of every channel of one half with every channel of the other, averaged over both ways.

    Shape (repeats, channels, channels); the diagonal is the reliability of the channels. Similarities are
    those of up to 2,000 random nodes.
    """
    generator = np.random.default_rng(seed)
    found = []
    for _ in range(repeats):
        nodes = torch.as_tensor(generator.permutation(graph.num_nodes)[:COMPARED])
        both = [
            [centred_similarities(rows[nodes.to(rows.device)]) for rows in channels(half)]
            for half in halves(graph, generator)
        ]
        first, second = both
        products = torch.stack([torch.stack([(one * other).sum() for other in second]) for one in first])
        lengths = [torch.stack([one.square().sum() for one in half]).clamp(min=0).sqrt() for half in both]
        norms = lengths[0][:, None] * lengths[1]
        values = torch.where(norms > 0, products / norms.clamp(min=torch.finfo(norms.dtype).tiny), 0)
        found.append(((values + values.T) / 2).double().cpu().numpy())
    return np.stack(found)


def centred_similarities(rows: Tensor) -> Tensor:
    """U-centred inner products of rows: of unrelated rows, their inner product is 0 on average.

    The diagonal is 0 and all rows sum to 0 (Székely and Rizzo, Annals of Statistics 2014, Definition 2).
    """
    count = len(rows)
    similarities = (rows @ rows.T).fill_diagonal_(0)
    sums = similarities.sum(dim=1) / (count - 2)
    similarities -= sums[:, None]
    similarities -= sums
    similarities += sums.sum() / (count - 1)
    return similarities.fill_diagonal_(0)


def _sketch(features: Tensor | SparseMatrix) -> Tensor:
    """Dense features, projected at random to few columns if there are many."""
    width = features.num_columns if isinstance(features, SparseMatrix) else features.shape[1]
    if width <= SKETCHED:
        return dense(features)
    draws = torch.randn(width, SKETCHED, generator=torch.Generator().manual_seed(0))
    return features @ draws.to(features.values if isinstance(features, SparseMatrix) else features)


def incomparable(graph: Graph) -> str:
    """Why halves of a graph cannot be compared; empty if they can."""
    if graph.num_nodes < LEAST_NODES:
        return f"the graph has fewer than {LEAST_NODES} nodes"
    if graph.num_features < LEAST_COLUMNS:
        return f"the graph has fewer than {LEAST_COLUMNS} feature columns"
    if graph.degrees.max() < 2:
        return "no node has two neighbours"
    return ""
