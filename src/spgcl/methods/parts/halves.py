"""Split-half agreement: do channels look alike when computed from other columns and other edges?"""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from spgcl.engine.tensors import GraphTensors, SparseMatrix
from spgcl.graph import Graph
from spgcl.methods.parts.channels import Surroundings, dense

# Nodes whose similarities are compared, and columns to which a random projection reduces wider features.
COMPARED = 2000
SKETCHED = 256
REPEATS = 5
# Below these, halves of a graph are not worth comparing.
LEAST_NODES, LEAST_COLUMNS = 20, 4

# The channels of a graph, matrices with one row per node; several times, if they are random projections.
Channels = Callable[[Graph], list[list[Tensor]]]


def channels_on(device: torch.device) -> Channels:
    """The channels of `spgcl.methods.parts.channels`, with degrees described by the graph's own centres."""

    def channels(graph: Graph) -> list[list[Tensor]]:
        tensors = GraphTensors.of(graph, device)
        around = Surroundings.of(graph, tensors)
        centres = around.degree_centres()
        means = around.degrees(centres).mean(dim=0)
        return [list(around.channels(sketch, centres, means)) for sketch in _sketches(tensors.features)]

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
        first, second = (_similarities(channels(half), nodes) for half in halves(graph, generator))
        products = torch.stack(
            [torch.stack([(one * other).sum() for other in second[0]]) for one in first[0]]
        )
        norms = (first[1][:, None] * second[1]).sqrt()
        values = torch.where(norms > 0, products / norms.clamp(min=torch.finfo(norms.dtype).tiny), 0)
        found.append(((values + values.T) / 2).double().cpu().numpy())
    return np.stack(found)


def axis_reliabilities(
    graph: Graph,
    channels: Callable[[Graph], Iterable[Tensor]],
    bases: Sequence[Tensor],
    nodes: Tensor,
    *,
    repeats: int,
    seed: int,
) -> list[Tensor]:
    """Correlation between halves of the coordinates along every axis, 0 where it is negative; per channel.

    Args:
        graph: The graph that is split.
        channels: The channels of a half, on the columns of the bases.
        bases: Per channel, axes as columns.
        nodes: Nodes whose coordinates are compared. Axes that were learned from other nodes do not fit their
            noise.
        repeats: Different halves, over which correlations are averaged.
        seed: Decides the halves.
    """
    generator = np.random.default_rng(seed)
    sums = [basis.new_zeros(basis.shape[1]) for basis in bases]
    for _ in range(repeats):
        first, second = (
            [_standardised(rows[nodes] @ basis) for rows, basis in zip(channels(half), bases, strict=True)]
            for half in halves(graph, generator)
        )
        for total, one, other in zip(sums, first, second, strict=True):
            total += (one * other).sum(dim=0)
    return [(total / repeats).clamp(min=0) for total in sums]


def _standardised(columns: Tensor) -> Tensor:
    """Columns around their means, of length 1; constant ones become 0."""
    centred = columns - columns.mean(dim=0)
    lengths: Tensor = torch.linalg.norm(centred, dim=0)
    return centred / lengths.where(lengths > 1e-6 * len(columns) ** 0.5, torch.inf)


def _similarities(looks: list[list[Tensor]], nodes: Tensor) -> tuple[list[Tensor], Tensor]:
    """Centred similarities of each channel and their squared norms.

    The noise of a random projection would add to a norm; it does not add to the product of two projections.
    """
    centred = [[centred_similarities(rows[nodes.to(rows.device)]) for rows in look] for look in looks]
    squares = [(one * other).sum() for one, other in zip(centred[0], centred[-1], strict=True)]
    means = [torch.stack(channel).mean(dim=0) for channel in zip(*centred, strict=True)]
    return means, torch.stack(squares).clamp(min=0)


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


def _sketches(features: Tensor | SparseMatrix) -> list[Tensor]:
    """Dense features, or two random projections of them if there are many columns."""
    width = features.shape[1]
    if width <= 2 * SKETCHED:
        return [dense(features)]
    draws = torch.randn(width, 2 * SKETCHED, generator=torch.Generator().manual_seed(0))
    values = features.values if isinstance(features, SparseMatrix) else features
    return [features @ part.contiguous() for part in draws.to(values).chunk(2, dim=1)]


def incomparable(graph: Graph) -> str:
    """Why halves of a graph cannot be compared; empty if they can."""
    if graph.num_nodes < LEAST_NODES:
        return f"the graph has fewer than {LEAST_NODES} nodes"
    if graph.num_features < LEAST_COLUMNS:
        return f"the graph has fewer than {LEAST_COLUMNS} feature columns"
    if graph.degrees.max() < 2:
        return "no node has two neighbours"
    return ""
