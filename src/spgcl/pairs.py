"""Which nodes attract and which repel: seeds, their T-hop pool, the most similar nodes in it, negatives."""

import torch
from torch import Tensor

from spgcl.tensors import SparseMatrix, distinct


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


def neighbourhood_union(adjacency: SparseMatrix, seeds: Tensor, hops: int) -> Tensor:
    """Nodes within `hops` of any seed, each once, in ascending order (the pool of the paper's text)."""
    reached = distinct(seeds, adjacency.num_rows)[0]
    for _ in range(hops):
        reached = distinct(adjacency.select(reached).columns, adjacency.num_rows)[0]
    return reached


def neighbourhood_lists(adjacency: SparseMatrix, seeds: Tensor, hops: int) -> Tensor:
    """Nodes within `hops` of each seed, the lists joined: a node counts once a seed that reaches it."""
    num_nodes = adjacency.num_rows
    owners, nodes = torch.arange(len(seeds), device=seeds.device), seeds.long()
    for _ in range(hops):
        expansion = int(adjacency.counts[nodes].sum())
        # Dense graphs reach nearly everything within two hops; there one product over all nodes is less work
        # than sorting what was found. Sorting an entry takes about as long as this many multiplications.
        if expansion * 200 > len(seeds) * (len(adjacency.columns) + 4 * num_nodes):
            reach = torch.zeros(num_nodes, len(seeds), device=seeds.device)
            reach[nodes, owners] = 1
            nodes, owners = (adjacency.transposed @ reach).nonzero().unbind(1)
        else:
            found = adjacency.select(nodes)
            keys = torch.unique(owners[found.row_of_entry.long()] * num_nodes + found.columns)
            owners, nodes = keys // num_nodes, keys % num_nodes
    return nodes


def cut_at_random(nodes: Tensor, limit: int | None, generator: torch.Generator) -> Tensor:
    """A uniform choice of `limit` entries without replacement, or all when there are no more."""
    if limit is None or len(nodes) <= limit:
        return nodes
    return nodes[torch.randperm(len(nodes), generator=generator, device=nodes.device)[:limit]]


def top_similar(similarities: Tensor, count: int, same: Tensor | None = None) -> Tensor:
    """Columns of the `count` largest similarities a row; entries marked `same` are left out.

    Differs from the paper when `same` is given: the node itself, at similarity 1, is always the nearest.
    """
    if same is not None:
        similarities = similarities.masked_fill(same, -torch.inf)
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
