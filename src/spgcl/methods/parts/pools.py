"""Which nodes attract and which repel: seeds, their T-hop pool, the most similar nodes in it, negatives."""

from dataclasses import dataclass

import torch
from torch import Tensor

from spgcl.engine.kernels import step as kernels
from spgcl.engine.sampling import sampled_rows
from spgcl.engine.tensors import SparseMatrix, distinct


@dataclass(frozen=True, eq=False)
class Pool:
    """The nodes that a step looks at.

    Attributes:
        nodes: One entry a node, or several where the pool counts multiplicity.
        size: How many entries count, those in front; None for all. Where shapes have to be the same at every
            step, the rest repeats an entry that counts.
    """

    nodes: Tensor
    size: Tensor | None = None

    @property
    def counted(self) -> Tensor | None:
        """Which entries count, as a mask; None for all."""
        if self.size is None:
            return None
        return torch.arange(len(self.nodes), device=self.nodes.device) < self.size

    def draw(self, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """Places of entries drawn uniformly, with replacement."""
        if self.size is None:
            return torch.randint(len(self.nodes), shape, generator=generator, device=self.nodes.device)
        drawn = torch.rand(shape, generator=generator, device=self.nodes.device) * self.size
        return torch.minimum(drawn.long(), self.size - 1)


def sample_nodes(num_nodes: int, count: int, generator: torch.Generator) -> Tensor:
    """Different nodes drawn uniformly; all of them, in random order, when there are no more than `count`."""
    device = generator.device
    if count * 64 > num_nodes:
        return torch.randperm(num_nodes, generator=generator, device=device)[:count]
    # On large graphs no permutation of all nodes is made: twice as many draws hold `count` different ones.
    drawn = torch.randint(num_nodes, (2 * count,), generator=generator, device=device)
    _, places = torch.unique(drawn, return_inverse=True)
    order = torch.arange(2 * count, device=device)
    first = torch.full((2 * count,), 2 * count, device=device).scatter_reduce(0, places, order, "amin")
    return drawn[first[places] == order][:count]


def neighbourhood_union(
    adjacency: SparseMatrix,
    seeds: Tensor,
    hops: int,
    fan_out: int = 0,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Nodes within `hops` of any seed, each once, in ascending order (the pool of the paper's text).

    With a `fan_out`, a hop goes to so many neighbours of a node at most, drawn at random.
    """
    reached = distinct(seeds, adjacency.num_rows)[0]
    for _ in range(hops):
        found = _found(adjacency, reached, fan_out, generator)
        reached = distinct(found.columns, adjacency.num_rows)[0]
    return reached


def _found(
    adjacency: SparseMatrix, nodes: Tensor, fan_out: int, generator: torch.Generator | None
) -> SparseMatrix:
    if fan_out and generator is not None:
        return sampled_rows(adjacency, nodes, fan_out, generator)
    return adjacency.select(nodes)


def neighbourhood_lists(
    adjacency: SparseMatrix,
    seeds: Tensor,
    hops: int,
    fan_out: int = 0,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Nodes within `hops` of each seed, the lists joined: a node counts once a seed that reaches it.

    With a `fan_out`, a hop goes to so many neighbours of a node at most, drawn at random.
    """
    num_nodes = adjacency.num_rows
    owners, nodes = torch.arange(len(seeds), device=seeds.device), seeds.long()
    for _ in range(hops):
        # A bounded hop is never large, and to count rows of all nodes would be the longest part of it.
        expansion = 0 if fan_out else int((adjacency.rows[nodes + 1] - adjacency.rows[nodes]).sum())
        # Dense graphs reach nearly everything within two hops; there one product over all nodes is less work
        # than sorting what was found. Sorting an entry takes about as long as this many multiplications.
        if expansion * 200 > len(seeds) * (len(adjacency.columns) + 4 * num_nodes):
            reach = torch.zeros(num_nodes, len(seeds), device=seeds.device)
            reach[nodes, owners] = 1
            nodes, owners = (adjacency.transposed @ reach).nonzero().unbind(1)
        else:
            found = _found(adjacency, nodes, fan_out, generator)
            keys = torch.unique(owners[found.row_of_entry.long()] * num_nodes + found.columns)
            owners, nodes = keys // num_nodes, keys % num_nodes
    return nodes


def padded_pool(
    adjacency: SparseMatrix, seeds: Tensor, hops: int, limit: int, keys: kernels.Keys, *, as_set: bool
) -> Pool:
    """Some entries of the neighbourhoods of seeds, at random, by operations whose shapes are always the same.

    The same distribution as `neighbourhood_union` or `neighbourhood_lists` followed by `cut_at_random`: what
    is drawn from is never listed, only counted.
    """
    bounds = reaching_seeds(adjacency, seeds, hops, any_seed=as_set).cumsum(0)
    ranks, size = draw_distinct(bounds[-1], limit, keys)
    return Pool(torch.searchsorted(bounds, ranks, right=True), size)


def reaching_seeds(adjacency: SparseMatrix, seeds: Tensor, hops: int, *, any_seed: bool = False) -> Tensor:
    """How many of the different seeds reach every node within `hops`; at most one, where any will do."""
    heard, height = adjacency.transposed, adjacency.num_rows
    if kernels.serve(seeds):
        return kernels.spread(heard.pieces, heard.columns, seeds, hops, height=height, any_seed=any_seed)
    reach = torch.zeros(adjacency.num_rows, len(seeds), device=seeds.device)
    reach[seeds, torch.arange(len(seeds), device=seeds.device)] = 1
    for _ in range(hops):
        reach = (heard @ reach).sign()
    return (reach.amax(1) if any_seed else reach.sum(1)).long()


def draw_distinct(total: Tensor, count: int, keys: kernels.Keys) -> tuple[Tensor, Tensor]:
    """`count` different numbers below `total`, uniformly, and how many of them count: fewer if total is less.

    Enough numbers are drawn with replacement to hold `count` different ones; a small total is listed instead.
    A random choice among the different ones is then a draw without replacement.
    """
    generator, width = keys.generator, 4 * count
    device = generator.device
    if kernels.available() and device.type == "cuda":
        return kernels.draw(total, count, keys.take()), total.clamp(max=count)
    listed = torch.arange(width, device=device)
    drawn = torch.rand(width, dtype=torch.float64, generator=generator, device=device) * total
    ordered = torch.where(total <= width, listed, drawn.long()).sort().values
    new = torch.cat([listed[:1] == 0, ordered[1:] != ordered[:-1]]) & (ordered < total)
    order = torch.rand(width, generator=generator, device=device).masked_fill(~new, 2)
    smallest = order.topk(count, largest=False)
    size = (smallest.values < 2).sum()
    chosen = torch.where(smallest.values < 2, smallest.indices, smallest.indices[0])
    return ordered[chosen], size


def cut_at_random(nodes: Tensor, limit: int | None, generator: torch.Generator) -> Tensor:
    """A uniform choice of `limit` entries without replacement, or all when there are no more."""
    if limit is None or len(nodes) <= limit:
        return nodes
    return nodes[sample_nodes(len(nodes), limit, generator)]


def top_similar(similarities: Tensor, count: int, left_out: Tensor | None = None) -> Tensor:
    """Columns of the `count` largest similarities a row, without the entries marked as left out.

    Differs from the paper when a node itself is left out: at similarity 1, it is always the nearest.
    """
    if left_out is not None:
        similarities = similarities.masked_fill(left_out, -torch.inf)
    return similarities.topk(count, dim=1).indices


def cover_ratio(covered: Tensor) -> float:
    """Node Cover Ratio: share of nodes that were a positive at least once so far.

    The paper prints an intersection over epochs; only the union gives the curve it shows.
    """
    return float(covered.float().mean())


def overlap_ratio(pairs: Tensor, earlier: Tensor) -> float:
    """Overlapped Selection Ratio: share of (anchor, positive) keys that were selected a step earlier too."""
    now = torch.unique(pairs)
    return float(torch.isin(now, earlier).float().mean()) if len(now) else 0.0
