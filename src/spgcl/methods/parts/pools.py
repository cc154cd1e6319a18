"""Which nodes attract and which repel: seeds, their T-hop pool, the most similar nodes in it, negatives."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from spgcl.engine.tensors import SparseMatrix, distinct

# The rows of some nodes, whole or sampled: where a hop goes.
RowsOf = Callable[[SparseMatrix, Tensor], SparseMatrix]


def whole_rows(adjacency: SparseMatrix, rows: Tensor) -> SparseMatrix:
    """All entries of the rows."""
    return adjacency.select(rows)


@dataclass(frozen=True, eq=False)
class Compared:
    """The nodes that a step compares.

    Attributes:
        pool: Entries of the pool.
        seeds: The anchors; None if these are the entries of the pool.
        negatives: Nodes drawn from the whole graph, shape (anchors, K_neg); None if they are from the pool.
    """

    pool: Tensor
    seeds: Tensor | None
    negatives: Tensor | None

    @property
    def anchors(self) -> Tensor:
        """The nodes that attract and repel others."""
        return self.pool if self.seeds is None else self.seeds

    @property
    def nodes(self) -> Tensor:
        """All of them in one list: pool, negatives, seeds."""
        negatives = None if self.negatives is None else self.negatives.reshape(-1)
        return torch.cat([part for part in (self.pool, negatives, self.seeds) if part is not None])

    def similarities(self, projected: Tensor, indices: Tensor) -> tuple[Tensor, Tensor | None]:
        """Similarities of anchors with the pool, and with the negatives from the whole graph.

        Args:
            projected: Unit vectors of distinct nodes.
            indices: Row of every node of the list.
        """
        # `index_select`, not indexing: the backward pass of indexing adds up repeated rows in a
        # nondeterministic order.
        pool_rows = projected.index_select(0, indices[: len(self.pool)])
        anchor_rows = pool_rows
        if self.seeds is not None:
            anchor_rows = projected.index_select(0, indices[len(indices) - len(self.seeds) :])
        similarities = anchor_rows @ pool_rows.T
        if self.negatives is None:
            return similarities, None
        # One product over the distinct rows; the similarities of the drawn pairs are read from it.
        columns = indices[len(self.pool) :][: self.negatives.numel()].view_as(self.negatives)
        return similarities, (anchor_rows @ projected.T).gather(1, columns)


def sample_nodes(num_nodes: int, count: int, generator: torch.Generator) -> Tensor:
    """Distinct nodes drawn uniformly; all of them, in random order, if there are no more than `count`."""
    device = generator.device
    if count * 64 > num_nodes:
        return torch.randperm(num_nodes, generator=generator, device=device)[:count]
    # On large graphs a permutation of all nodes is too much: twice as many draws hold `count` distinct ones.
    drawn = torch.randint(num_nodes, (2 * count,), generator=generator, device=device)
    _, indices = torch.unique(drawn, return_inverse=True)
    order = torch.arange(2 * count, device=device)
    first = torch.full((2 * count,), 2 * count, device=device).scatter_reduce(0, indices, order, "amin")
    return drawn[first[indices] == order][:count]


def neighbourhood_union(
    adjacency: SparseMatrix, seeds: Tensor, hops: int, *, rows_of: RowsOf = whole_rows
) -> Tensor:
    """Nodes within `hops` of any seed, each once, in ascending order (the pool of the paper's text)."""
    reached = distinct(seeds, adjacency.shape[0])[0]
    for _ in range(hops):
        reached = distinct(rows_of(adjacency, reached).columns, adjacency.shape[0])[0]
    return reached


def neighbourhood_lists(
    adjacency: SparseMatrix, seeds: Tensor, hops: int, *, rows_of: RowsOf = whole_rows
) -> Tensor:
    """Nodes within `hops` of each seed, as one list: a node occurs once per seed that reaches it."""
    num_nodes = adjacency.shape[0]
    owners, nodes = torch.arange(len(seeds), device=seeds.device), seeds.long()
    for _ in range(hops):
        # A bounded hop is never large, and counting the entries of its rows would be the longest part of it.
        whole = rows_of is whole_rows
        expansion = int((adjacency.rows[nodes + 1] - adjacency.rows[nodes]).sum()) if whole else 0
        # On dense graphs two hops reach nearly all nodes; there one product over all nodes is less work than
        # sorting the entries found. Sorting an entry takes about as long as 200 multiplications.
        if expansion * 200 > len(seeds) * (len(adjacency.columns) + 4 * num_nodes):
            reach = torch.zeros(num_nodes, len(seeds), device=seeds.device)
            reach[nodes, owners] = 1
            nodes, owners = (adjacency.transposed @ reach).nonzero().unbind(1)
        else:
            found = rows_of(adjacency, nodes)
            pairs = torch.unique(owners[found.row_of_entry.long()] * num_nodes + found.columns)
            owners, nodes = pairs // num_nodes, pairs % num_nodes
    return nodes


def cut_at_random(nodes: Tensor, limit: int | None, generator: torch.Generator) -> Tensor:
    """`limit` entries drawn uniformly without replacement, or all if there are no more."""
    if limit is None or len(nodes) <= limit:
        return nodes
    return nodes[sample_nodes(len(nodes), limit, generator)]


def top_similar(similarities: Tensor, count: int, left_out: Tensor | None = None) -> Tensor:
    """Columns of the `count` largest similarities per row, without the entries marked as left out.

    Differs from the paper if the node itself is left out: at similarity 1, it is always the nearest.
    """
    if left_out is not None:
        similarities = similarities.masked_fill(left_out, -torch.inf)
    return similarities.topk(count, dim=1).indices


def cover_ratio(covered: Tensor) -> float:
    """Node Cover Ratio: fraction of nodes that were a positive at least once so far.

    The paper prints an intersection over epochs; only the union gives the curve it shows.
    """
    return float(covered.float().mean())


def overlap_ratio(pairs: Tensor, earlier: Tensor) -> float:
    """Overlapped Selection Ratio: fraction of (anchor, positive) pairs that the step before selected too.

    A pair is one number, which is negative if it does not count.
    """
    now = torch.unique(pairs[pairs >= 0])
    return float(torch.isin(now, earlier).float().mean()) if len(now) else 0.0
