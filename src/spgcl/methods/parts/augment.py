"""The augmentations of the paper's Table 11 but for diffusion, each from a graph on a device to a new one.

A view keeps all nodes in their rows, so that two views can be compared node by node: a dropped node loses its
edges and its features. Undirected graphs stay undirected, and self loops are never dropped or added. A
removed edge has no entry on CPU, and one of value 0 elsewhere, where all views then have the same shapes.
"""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from spgcl.engine.autograd import apply
from spgcl.engine.device import is_accelerator
from spgcl.engine.patterns import Pattern
from spgcl.engine.tensors import GraphTensors, SparseMatrix

# Probability that a random walk which visits a known node restarts elsewhere.
RESTART = 0.2


def drop_edges(graph: GraphTensors, rate: float | Tensor, generator: torch.Generator) -> GraphTensors:
    """Remove edges at random, both directions of an undirected one together.

    Args:
        graph: The graph to make a view of.
        rate: Probability of removal, one for all or one per entry of `graph.adjacency`; for an undirected
            edge, the one of the entry above the diagonal.
        generator: Decides which.
    """
    adjacency = graph.adjacency
    kept = torch.rand(len(adjacency.columns), generator=generator, device=graph.device) >= rate
    if adjacency.symmetric:
        kept = torch.where(
            adjacency.pattern.above, kept, kept.index_select(0, adjacency.pattern.transposed[1])
        )
    return keep_entries(graph, kept)


def random_view(
    graph: GraphTensors, edge_rate: float | Tensor, column_rate: float | Tensor, generator: torch.Generator
) -> GraphTensors:
    """Remove random edges and mask random feature columns: the view of GRACE and those after it."""
    return mask_features(drop_edges(graph, edge_rate, generator), column_rate, generator)


def add_edges(graph: GraphTensors, rate: float, generator: torch.Generator) -> GraphTensors:
    """Add random pairs as edges of weight 1, as many as `rate` times the number of edges.

    Pairs that are edges already, or drawn twice, change nothing, so that dense graphs get fewer new edges.
    """
    num_nodes, symmetric = graph.num_nodes, graph.adjacency.symmetric
    present = graph.adjacency.values.nonzero().reshape(-1)
    num_edges = len(present) - num_nodes
    count = round(rate * (num_edges // 2 if symmetric else num_edges))
    if not count:
        return graph
    sources = torch.randint(num_nodes, (count,), generator=generator, device=graph.device)
    # An offset below the number of nodes never leads back to the node itself.
    offsets = torch.randint(1, num_nodes, (count,), generator=generator, device=graph.device)
    targets = (sources + offsets) % num_nodes
    if symmetric:
        sources, targets = torch.cat([sources, targets]), torch.cat([targets, sources])
    known = (graph.adjacency.row_of_entry.long() * num_nodes + graph.adjacency.columns)[present]
    keys, positions = torch.unique(torch.cat([known, sources * num_nodes + targets]), return_inverse=True)
    weights = None
    if graph.weights is not None:
        weights = graph.weights.new_ones(len(keys))
        weights[positions[: len(known)]] = graph.weights[present]
    return with_entries(graph, keys // num_nodes, keys % num_nodes, weights)


def random_nodes(graph: GraphTensors, fraction: float, generator: torch.Generator) -> Tensor:
    """A mask that holds every node with probability `fraction`."""
    return torch.rand(graph.num_nodes, generator=generator, device=graph.device) < fraction


def walked_nodes(graph: GraphTensors, fraction: float, generator: torch.Generator) -> Tensor:
    """A mask of the nodes that random walks from random nodes visit, until it holds that fraction of all."""
    adjacency, device = graph.adjacency, graph.device
    wanted = max(1, round(fraction * graph.num_nodes))
    if wanted >= graph.num_nodes:
        return torch.ones(graph.num_nodes, dtype=torch.bool, device=device)
    kept = torch.zeros(graph.num_nodes, dtype=torch.bool, device=device)
    walkers = torch.randint(graph.num_nodes, (max(1, wanted // 8),), generator=generator, device=device)
    missing = wanted
    while missing:
        new = torch.unique(walkers[~kept[walkers]])
        if len(new) > missing:
            new = new[torch.randperm(len(new), generator=generator, device=device)[:missing]]
        kept[new] = True
        missing -= len(new)
        draws, whims = torch.rand(2, len(walkers), generator=generator, device=device)
        counts = adjacency.rows[walkers + 1] - adjacency.rows[walkers]
        entries = adjacency.rows[walkers] + (draws * counts).long()
        stepped = torch.where(adjacency.values[entries] != 0, adjacency.columns[entries].long(), walkers)
        # Some walkers that find nothing new restart, so that a small component cannot trap them.
        fresh = torch.randint(graph.num_nodes, walkers.shape, generator=generator, device=device)
        walkers = torch.where(kept[stepped] & (whims < RESTART), fresh, stepped)
    return kept


def mask_features(graph: GraphTensors, rate: float | Tensor, generator: torch.Generator) -> GraphTensors:
    """Set random feature columns to zero for all nodes; one rate for all columns or one per column."""
    features = graph.features
    width = features.shape[1]
    kept = (torch.rand(width, generator=generator, device=graph.device) >= rate).float()
    if isinstance(features, SparseMatrix):
        return replace(graph, features=features.revalued(features.values * kept[features.columns]))
    return replace(graph, features=features * kept)


def drop_features(graph: GraphTensors, rate: float, generator: torch.Generator) -> GraphTensors:
    """Set random entries of the features to zero, independently."""
    features = graph.features
    values = features.values if isinstance(features, SparseMatrix) else features
    kept = (torch.rand(values.shape, generator=generator, device=graph.device) >= rate).float()
    if isinstance(features, SparseMatrix):
        return replace(graph, features=features.revalued(values * kept))
    return replace(graph, features=values * kept)


def shuffle_nodes(graph: GraphTensors, generator: torch.Generator) -> GraphTensors:
    """Permute the feature rows: the corruption of DGI."""
    order = torch.randperm(graph.num_nodes, generator=generator, device=graph.device)
    features = graph.features
    if isinstance(features, SparseMatrix):
        if isinstance(features, Shuffled):
            order = features.order[order]
        return replace(graph, features=Shuffled(features.pattern, features.values, order=order))
    return replace(graph, features=features[order])


@dataclass(frozen=True, eq=False, kw_only=True)
class Shuffled(SparseMatrix):
    """A matrix with permuted rows: entries stay in place, and the rows of products are reordered.

    `row_of_entry` and `transposed` refer to the stored order.

    Attributes:
        order: Stored row of every row.
    """

    order: Tensor

    def select(self, chosen: Tensor) -> SparseMatrix:
        """The chosen rows, in the order given; repeats are allowed."""
        return super().select(self.order[chosen])

    def dense(self) -> Tensor:
        """The matrix with its zeros, rows in order."""
        return super().dense()[self.order]

    def __matmul__(self, dense: Tensor) -> Tensor:
        return apply(_Reordered, super().__matmul__(dense), self.order)


class _Reordered(torch.autograd.Function):
    """Permuted rows; the backward pass is a permutation, too, without accumulation."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, order: Tensor) -> Tensor:
        ctx.order = order
        return rows.index_select(0, order)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient.index_select(0, ctx.order.argsort()), None


def keep_nodes(graph: GraphTensors, kept: Tensor) -> GraphTensors:
    """A view in which only the marked nodes have edges and features."""
    adjacency = graph.adjacency
    view = keep_entries(graph, kept[adjacency.row_of_entry] & kept[adjacency.columns])
    features = graph.features
    if isinstance(features, SparseMatrix):
        if isinstance(features, Shuffled):
            kept = kept[features.order.argsort()]
        values = features.values * kept[features.row_of_entry].float()
        return replace(view, features=features.revalued(values))
    return replace(view, features=features * kept[:, None].float())


def keep_entries(graph: GraphTensors, kept: Tensor) -> GraphTensors:
    """A view with the marked entries of the adjacency, and every self loop."""
    kept = kept | graph.adjacency.pattern.loops
    # On CPU every entry costs time in every product; elsewhere changing shapes cost more.
    return zero_entries(graph, kept) if is_accelerator(graph.device) else list_entries(graph, kept)


def list_entries(graph: GraphTensors, kept: Tensor) -> GraphTensors:
    """A view that has the marked entries and no others."""
    adjacency, chosen = graph.adjacency, kept.nonzero().reshape(-1)
    weights = None if graph.weights is None else graph.weights[chosen]
    return with_entries(graph, adjacency.row_of_entry[chosen], adjacency.columns[chosen], weights)


def zero_entries(graph: GraphTensors, kept: Tensor) -> GraphTensors:
    """A view that has the marked entries and all others with value 0; it shares the graph's pattern."""
    adjacency = graph.adjacency
    weights = adjacency.values.sign() if graph.weights is None else graph.weights
    return normalised(graph, adjacency.revalued(weights * kept))


def with_entries(
    graph: GraphTensors, sources: Tensor, targets: Tensor, weights: Tensor | None
) -> GraphTensors:
    """The same nodes and features with other adjacency entries, in row order with loops, normalised."""
    old = graph.adjacency
    values = torch.ones(len(sources), device=graph.device) if weights is None else weights
    bounds = torch.arange(graph.num_nodes + 1, dtype=sources.dtype, device=graph.device)
    rows = torch.searchsorted(sources, bounds).to(old.rows.dtype)
    columns = targets.to(old.columns.dtype)
    pattern = Pattern(rows, columns, old.shape[1])
    return normalised(graph, SparseMatrix(pattern, values, old.symmetric))


def normalised(graph: GraphTensors, weights: SparseMatrix) -> GraphTensors:
    """The same nodes and features with edges of these weights, including loops."""
    degrees = (weights @ torch.ones(graph.num_nodes, 1, device=graph.device)).view(-1)
    sources, targets = weights.row_of_entry, weights.columns
    if weights.symmetric:
        scale = degrees.rsqrt()
        values = weights.values * scale[sources] * scale[targets]
    else:
        values = weights.values / degrees[sources]
    kept = None if graph.weights is None else weights.values
    return GraphTensors(graph.features, weights.revalued(values), kept)
