"""SP-GCL's step in fixed shapes, so that CUDA captures it as a graph and replays it.

It has the same distribution as the plain step, but other random draws. Nodes are counted and marked instead
of listed, lists of varying length are padded, and nothing waits for the host.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from spgcl.engine.kernels import layers, sparse
from spgcl.engine.kernels.step import SHARED
from spgcl.engine.levels import Level, encode
from spgcl.engine.tensors import GraphTensors, SparseMatrix
from spgcl.methods.method import Prepared
from spgcl.methods.parts.losses import single_pass_contrastive
from spgcl.methods.parts.pools import top_similar

if TYPE_CHECKING:
    from spgcl.methods.spgcl import SPGCL

# Above this, arrays over all nodes cost more than waiting for the host.
MOST_NODES = 500_000


@dataclass(frozen=True, eq=False)
class PaddedPool:
    """The pool of a step.

    Attributes:
        nodes: Node of every entry; those that do not count repeat one that does.
        size: How many entries count, those in front.
    """

    nodes: Tensor
    size: Tensor

    @property
    def counted(self) -> Tensor:
        """Which entries count, as a mask."""
        return torch.arange(len(self.nodes), device=self.nodes.device) < self.size


def has_fixed_shapes(method: "SPGCL", graph: GraphTensors) -> bool:
    """Whether this step can be taken: on CUDA, if the pool is cut and surely holds enough nodes."""
    return (
        graph.capturable
        and method.encoder.kind == "gcn"
        and method.pool_size > 0
        and not method.fan_out
        and method.positives < min(method.seeds, method.pool_size, graph.num_nodes)
        and 2 * method.pool_size <= SHARED
        and graph.num_nodes <= MOST_NODES
    )


def captured_loss(method: "SPGCL", prepared: Prepared, generator: torch.Generator) -> Tensor:
    """Algorithm 1 in fixed shapes."""
    graph, keys = prepared.graph, layers.Keys(generator)
    everything = torch.full((), graph.num_nodes, device=graph.device)
    seeds = layers.draw_distinct(everything, min(method.seeds, graph.num_nodes), keys.take())
    pool = padded_pool(graph.adjacency, seeds, method.hops, method.pool_size, keys, as_set=method.pool_as_set)
    return padded_contrast(method, prepared, seeds, pool, generator, keys)


def padded_pool(
    adjacency: SparseMatrix, seeds: Tensor, hops: int, limit: int, keys: layers.Keys, *, as_set: bool
) -> PaddedPool:
    """Random entries of the neighbourhoods of seeds.

    The same distribution as `neighbourhood_union` or `neighbourhood_lists` followed by `cut_at_random`, but
    the entries to choose from are counted, not listed.
    """
    reverse = adjacency.transposed
    counts = sparse.count_reaching_seeds(
        reverse.pattern.pieces, reverse.columns, seeds, hops, num_nodes=adjacency.shape[0], any_seed=as_set
    )
    bounds = counts.cumsum(0)
    ranks = layers.draw_distinct(bounds[-1], limit, keys.take())
    return PaddedPool(torch.searchsorted(bounds, ranks, right=True), bounds[-1].clamp(max=limit))


def padded_contrast(
    method: "SPGCL",
    prepared: Prepared,
    seeds: Tensor,
    pool: PaddedPool,
    generator: torch.Generator,
    keys: layers.Keys,
) -> Tensor:
    """The loss of given seeds and their pool."""
    compared = method.compared(prepared.graph, seeds, pool.nodes, generator)
    level, indices = Level.of(compared.nodes, prepared.graph.num_nodes)
    similarities, negative = compared.similarities(_project(method, prepared.graph, level, keys), indices)
    anchors = compared.anchors
    if prepared.watching:
        _remember(method, prepared, similarities.detach(), anchors, pool)
    if negative is None:
        return layers.contrast(
            similarities,
            anchors,
            pool.nodes,
            pool.size,
            keys.take(),
            anchors_are_pool=not method.anchors_are_seeds,
            positives=method.positives,
            negatives=method.negatives,
            own_positive=method.own_positive,
            negative_weight=method.negative_weight,
        )
    left_out = _left_out(method, anchors, pool)
    positive = similarities.gather(1, top_similar(similarities.detach(), method.positives, left_out))
    counted = None if method.anchors_are_seeds else pool.counted
    return single_pass_contrastive(
        positive, negative, negative_weight=method.negative_weight, anchors=counted
    )


def _project(method: "SPGCL", graph: GraphTensors, level: Level, keys: layers.Keys) -> Tensor:
    """Z of the rows of a level."""
    if method.whole_graph:
        everything = Level.everything(graph.num_nodes, graph.device)
        hidden = level.select(encode(method.encoder, graph, everything, keys))
    else:
        hidden = encode(method.encoder, graph, level, keys)
    first, activation, second = method.head
    assert isinstance(first, nn.Linear)
    values = (hidden.relu() if method.positive_part else hidden) @ first.weight.T
    inner = layers.activated(
        values, level.mask, level.size, bias=first.bias, activation=activation, keys=keys
    )
    return layers.unit_rows(second(inner))


def _left_out(method: "SPGCL", anchors: Tensor, pool: PaddedPool) -> Tensor:
    """Which entries of the pool cannot be positives, for all anchors or for each."""
    if method.own_positive:
        return ~pool.counted
    return ~pool.counted | (anchors[:, None] == pool.nodes)


def _remember(
    method: "SPGCL", prepared: Prepared, similarities: Tensor, anchors: Tensor, pool: PaddedPool
) -> None:
    """Keep what the curves of Figure 4 need, in place: a replayed graph writes to the memory of its capture.

    The kernel of the contrast does not store the pairs that it selects; they are selected here once more.
    """
    memory, num_nodes = prepared.memory, prepared.graph.num_nodes
    left_out = _left_out(method, anchors, pool)
    chosen = top_similar(similarities, method.positives, left_out)
    invalid = left_out.expand_as(similarities).gather(1, chosen)
    if not method.anchors_are_seeds:
        invalid = invalid | ~pool.counted[:, None]
    nodes = pool.nodes[chosen]
    pairs = (anchors[:, None] * num_nodes + nodes).masked_fill(invalid, -1)
    # Pairs that do not count are written behind the last node.
    covered = torch.zeros(num_nodes + 1, dtype=torch.bool, device=nodes.device)
    covered.scatter_(0, nodes.masked_fill(invalid, num_nodes).view(-1), True)
    if "covered" not in memory:
        memory["covered"] = torch.zeros_like(covered[:num_nodes])
    if "pairs" not in memory or memory["pairs"].shape != pairs.shape:
        memory["pairs"], memory["earlier_pairs"] = torch.full_like(pairs, -1), torch.full_like(pairs, -1)
    memory["covered"].logical_or_(covered[:num_nodes])
    memory["earlier_pairs"].copy_(memory["pairs"])
    memory["pairs"].copy_(pairs)
