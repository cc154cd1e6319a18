"""SP-GCL: single-pass contrastive learning (Wang et al., TMLR 2023)."""

from typing import Annotated, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from spgcl.engine.activations import activate
from spgcl.engine.convolutions import EncoderKind
from spgcl.engine.encoders import Activation, BatchNorm, Encoder, activation_module
from spgcl.engine.kernels import step as kernels
from spgcl.engine.levels import Level, activated, unit_rows
from spgcl.engine.pair_products import inner_products
from spgcl.engine.tensors import GraphTensors, distinct
from spgcl.errors import InputError
from spgcl.methods.method import Method, Prepared
from spgcl.methods.parts.losses import single_pass_contrastive
from spgcl.methods.parts.pools import (
    Pool,
    cover_ratio,
    cut_at_random,
    draw_distinct,
    neighbourhood_lists,
    neighbourhood_union,
    overlap_ratio,
    padded_pool,
    sample_nodes,
    top_similar,
)
from spgcl.methods.ranges import Count, Factor, Fraction, Positive, Size, SizesMemory, Width

# Above this, arrays over all nodes cost more than waiting for the host to learn what a step needs.
MOST_STATIC_NODES = 500_000


class SPGCL(Method):
    """One forward pass a step: similar nodes of a random neighbourhood attract, random ones repel.

    Args:
        num_features: Width of the graph's features.
        encoder: Graph convolution (f_theta).
        layers: Convolutions in the encoder.
        hidden: Width of the encoder, the head and the embedding.
        activation: Activation of the encoder.
        dropout: Share of activations dropped after every convolution.
        batch_norm: After every convolution: none, plain (no learnable scale, as in the paper), affine.
        batch_norm_rows: Whether its statistics come from all rows or from those the pool needs.
        normalise_features: Divide feature rows by their L1 norm.
        head_input: What the projection head g reads: H as it is, or its positive part.
        head_activation: Activation inside the projection head.
        seeds: Nodes drawn at every step (b).
        hops: Reach of a seed's neighbourhood (T).
        pool: Neighbourhoods joined as a set, or with a node counted once for every seed that reaches it.
        pool_size: Entries of the pool kept, at random; 0 keeps all.
        fan_out: Neighbours of a node that a hop goes to and a layer reads, unless it is evaluated for all
            rows, drawn at random; 0 takes all. With it a step costs the same on a graph of any size.
        anchors: Who is compared: the seeds, or every entry of the pool.
        own_positive: Whether a node counts among its own nearest.
        positives: Most similar nodes that attract (K_pos).
        negatives: Random nodes that repel (K_neg).
        negatives_from: Where those are drawn from: the pool, or all nodes.
        negative_weight: Weight of the repelling term; 1 is Eq. 6, K_neg the sum of the published code.
        steps: Updates of the weights.
        learning_rate: Of AdamW.
        weight_decay: Of AdamW.
    """

    def __init__(
        self,
        num_features: int,
        *,
        encoder: EncoderKind = "gcn",
        layers: Factor = 2,
        hidden: Width = 1536,
        activation: Activation = "prelu",
        dropout: Fraction = 0.6,
        batch_norm: BatchNorm = "plain",
        batch_norm_rows: Literal["all", "pool"] = "all",
        normalise_features: bool = True,
        head_input: Literal["plain", "relu"] = "relu",
        head_activation: Activation = "relu",
        seeds: Size = 512,
        hops: Annotated[int, SizesMemory.STEP] = 3,
        pool: Literal["set", "lists"] = "set",
        pool_size: Annotated[int, SizesMemory.STEP] = 256,
        fan_out: int = 0,
        anchors: Literal["pool", "seeds"] = "pool",
        own_positive: bool = False,
        positives: Factor = 5,
        negatives: Size = 100,
        negatives_from: Literal["pool", "all"] = "pool",
        negative_weight: float = 300.0,
        steps: Count = 300,
        learning_rate: Positive = 5e-4,
        weight_decay: float = 1e-4,
    ) -> None:
        super().__init__()
        if 0 < pool_size < positives + (not own_positive):
            raise InputError(f"positives is {positives}, but the pool has {pool_size} entries (pool_size)")
        self.encoder = Encoder(
            num_features,
            kind=encoder,
            layers=layers,
            hidden=hidden,
            activation=activation,
            dropout=dropout,
            batch_norm=batch_norm,
            fan_out=fan_out,
        )
        self.fan_out = fan_out
        self.head = nn.Sequential(
            nn.Linear(hidden, hidden), activation_module(head_activation), nn.Linear(hidden, hidden)
        )
        self.normalise_features = normalise_features
        self.whole_graph = batch_norm != "none" and batch_norm_rows == "all"
        self.positive_part = head_input == "relu"
        self.seeds, self.hops, self.pool_as_set, self.pool_size = seeds, hops, pool == "set", pool_size
        self.anchors_are_seeds, self.own_positive, self.positives = (
            anchors == "seeds",
            own_positive,
            positives,
        )
        self.negatives, self.negatives_everywhere = negatives, negatives_from == "all"
        self.negative_weight = negative_weight
        self.steps, self.learning_rate, self.weight_decay = steps, learning_rate, weight_decay

    def is_static(self, prepared: Prepared) -> bool:
        """Where a pool surely holds enough nodes, on CUDA, unless it is to be kept whole or is looked at."""
        graph = prepared.graph
        return (
            graph.device.type == "cuda"
            and kernels.available()
            and self.encoder.kind == "gcn"
            and self.pool_size > 0
            and not self.fan_out
            and self.positives < min(self.seeds, self.pool_size, graph.num_nodes)
            and 2 * self.pool_size <= kernels.SHARED
            and graph.num_nodes <= MOST_STATIC_NODES
            and not prepared.watching
        )

    def loss(self, prepared: Prepared, step: int, generator: torch.Generator) -> Tensor:
        """Steps 1 to 5 of Algorithm 1; the pool comes first, so that only the rows it needs are encoded."""
        graph = prepared.graph
        if not self.is_static(prepared):
            seeds = sample_nodes(graph.num_nodes, self.seeds, generator)
            return self._contrast(prepared, seeds, self._pool(graph, seeds, generator), generator)
        keys = kernels.Keys(generator)
        everything = torch.full((), graph.num_nodes, device=graph.device)
        seeds, _ = draw_distinct(everything, min(self.seeds, graph.num_nodes), keys)
        pool = padded_pool(graph.adjacency, seeds, self.hops, self.pool_size, keys, as_set=self.pool_as_set)
        return self._contrast(prepared, seeds, pool, generator, keys)

    def _contrast(
        self,
        prepared: Prepared,
        seeds: Tensor,
        pool: Pool,
        generator: torch.Generator,
        keys: kernels.Keys | None = None,
    ) -> Tensor:
        """The loss for given seeds and their pool; with keys, by operations of fixed shapes."""
        graph = prepared.graph
        anchors = seeds if self.anchors_are_seeds else pool.nodes
        candidates = pool.nodes
        if self.negatives_everywhere:
            drawn = torch.randint(
                graph.num_nodes, (len(anchors), self.negatives), generator=generator, device=graph.device
            )
            candidates = torch.cat([pool.nodes, drawn.reshape(-1)])
        elif keys is None and not self.anchors_are_seeds:
            return self._pool_contrast(prepared, pool, generator)
        nodes = torch.cat([candidates, anchors]) if self.anchors_are_seeds else candidates
        if keys is None:
            rows, places = distinct(nodes, graph.num_nodes)
            projected = self._project(graph, rows, generator)
        else:
            projected, places = self._padded_project(graph, nodes, keys)
        # Not by brackets: their gradient adds repeated rows up in an order that threads decide.
        pool_rows = projected.index_select(0, places[: len(pool.nodes)])
        anchor_rows = pool_rows
        if self.anchors_are_seeds:
            anchor_rows = projected.index_select(0, places[len(candidates) :])
        similarities = anchor_rows @ pool_rows.T
        if keys is not None and similarities.is_cuda and not self.negatives_everywhere:
            return self._fused_contrast(similarities, anchors, pool, keys)
        positive = similarities.gather(1, self._chosen(prepared, similarities.detach(), anchors, pool))
        if self.negatives_everywhere:
            # One product over the distinct rows; the pairs that were drawn are read out of it.
            columns = places[len(pool.nodes) : len(candidates)].reshape(len(anchors), self.negatives)
            negative = (anchor_rows @ projected.T).gather(1, columns)
        else:
            negative = similarities.gather(1, pool.draw((len(anchors), self.negatives), generator))
        counted = None if self.anchors_are_seeds else pool.counted
        return single_pass_contrastive(
            positive, negative, negative_weight=self.negative_weight, anchors=counted
        )

    def _pool_contrast(self, prepared: Prepared, pool: Pool, generator: torch.Generator) -> Tensor:
        """The loss of a pool compared with itself: its distinct nodes stand for all of its entries."""
        nodes, places = distinct(pool.nodes, prepared.graph.num_nodes)
        similarities = inner_products(self._project(prepared.graph, nodes, generator))
        chosen = self._chosen(prepared, similarities.detach().index_select(1, places), nodes, pool)
        positive = similarities.gather(1, places[chosen]).index_select(0, places)
        drawn = places[pool.draw((len(places), self.negatives), generator)] + places[:, None] * len(nodes)
        negative = similarities.view(-1).index_select(0, drawn.view(-1)).view_as(drawn)
        return single_pass_contrastive(positive, negative, negative_weight=self.negative_weight)

    def _fused_contrast(
        self, similarities: Tensor, anchors: Tensor, pool: Pool, keys: kernels.Keys
    ) -> Tensor:
        loss: Tensor = kernels.Contrast.apply(  # type: ignore[no-untyped-call]
            similarities,
            anchors,
            pool.nodes,
            pool.size,
            keys.take(),
            not self.anchors_are_seeds,
            self.positives,
            self.negatives,
            self.own_positive,
            self.negative_weight,
        )
        return loss

    @torch.no_grad()
    def space(self, prepared: Prepared) -> Tensor:
        """Z, the normalised output of the head, in which positives are chosen."""
        return self._head(self.embed(prepared))

    def observe(self, prepared: Prepared) -> dict[str, float]:
        """Cover and overlap of the selected pairs, and the norm of every layer's weights."""
        numbers = {f"weight_norm_{place}": norm for place, norm in enumerate(self.encoder.weight_norms(), 1)}
        memory = prepared.memory
        if "covered" in memory:
            numbers["node_cover_ratio"] = cover_ratio(memory["covered"])
            numbers["overlapped_selection_ratio"] = overlap_ratio(memory["pairs"], memory["earlier_pairs"])
        return numbers

    def _pool(self, graph: GraphTensors, seeds: Tensor, generator: torch.Generator) -> Pool:
        gather = neighbourhood_union if self.pool_as_set else neighbourhood_lists
        reached = gather(graph.adjacency, seeds, self.hops, self.fan_out, generator)
        nodes = cut_at_random(reached, self.pool_size or None, generator)
        if len(nodes) < self.positives + (not self.own_positive):
            raise InputError(
                f"positives is {self.positives}, but this pool has {len(nodes)} nodes; "
                f"{_ways_to_more(nodes, graph)}"
            )
        return Pool(nodes)

    def _project(self, graph: GraphTensors, rows: Tensor, generator: torch.Generator) -> Tensor:
        """Z of distinct nodes."""
        return self._head(self.encoder(graph, rows, generator, every_row=self.whole_graph))

    def _padded_project(
        self, graph: GraphTensors, nodes: Tensor, keys: kernels.Keys
    ) -> tuple[Tensor, Tensor]:
        """Z of the distinct nodes of a list, and the row of every node of it, in fixed shapes."""
        level, places = Level.of(nodes, graph.num_nodes)
        if self.whole_graph:
            everything = Level.everything(graph.num_nodes, graph.device)
            hidden = self.encoder.padded(graph, everything, keys).index_select(0, level.nodes.clamp(min=0))
        else:
            hidden = self.encoder.padded(graph, level, keys)
        return self._padded_head(hidden, level, keys), places

    def _head(self, hidden: Tensor) -> Tensor:
        first, activation, second = self.head
        inner = activate(first(hidden.relu() if self.positive_part else hidden), activation)
        return normalize(second(inner), dim=1)

    def _padded_head(self, hidden: Tensor, level: Level, keys: kernels.Keys) -> Tensor:
        first, activation, second = self.head
        assert isinstance(first, nn.Linear) and isinstance(second, nn.Linear)
        values = (hidden.relu() if self.positive_part else hidden) @ first.weight.T
        inner = activated(
            values,
            level,
            bias=first.bias,
            norm=None,
            activation=activation,
            dropout=0.0,
            keys=keys,
        )
        return unit_rows(second(inner))

    def _chosen(self, prepared: Prepared, similarities: Tensor, anchors: Tensor, pool: Pool) -> Tensor:
        """Entries of the pool that are most similar to every anchor."""
        same = None if self.own_positive else anchors[:, None] == pool.nodes[None, :]
        # A pool holds a node at most once a seed: only in a small one can its copies leave too few others.
        if same is not None and pool.size is None and len(pool.nodes) < self.positives + self.seeds:
            others = len(pool.nodes) - int(same.sum(dim=1).max())
            if others < self.positives:
                raise InputError(
                    f"positives is {self.positives}, but a node has only {others} others in this pool; "
                    f"{_ways_to_more(pool.nodes, prepared.graph)}"
                )
        counted = pool.counted
        if counted is not None:
            same = ~counted if same is None else same | ~counted
        chosen = top_similar(similarities, self.positives, same)
        if prepared.watching:
            nodes = pool.nodes[chosen]
            _remember(prepared, anchors[:, None] * prepared.graph.num_nodes + nodes, nodes)
        return chosen


def _ways_to_more(nodes: Tensor, graph: GraphTensors) -> str:
    """What to do about a small pool: one of the whole graph cannot be raised."""
    whole = len(torch.unique(nodes)) == graph.num_nodes
    return "lower positives" if whole else "lower positives, or raise seeds or hops"


def _remember(prepared: Prepared, pairs: Tensor, nodes: Tensor) -> None:
    """Keep what the curves of Figure 4 need: nodes covered so far, pairs of this step and of the last."""
    memory = prepared.memory
    if "covered" not in memory:
        memory["covered"] = torch.zeros(prepared.graph.num_nodes, dtype=torch.bool, device=nodes.device)
        memory["pairs"] = pairs.new_empty(0)
    memory["covered"][nodes.reshape(-1)] = True
    memory["earlier_pairs"], memory["pairs"] = memory["pairs"], torch.unique(pairs)
