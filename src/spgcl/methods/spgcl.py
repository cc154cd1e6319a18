"""SP-GCL: single-pass contrastive learning (Wang et al., TMLR 2023)."""

from functools import partial
from typing import Annotated, Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from spgcl.engine.activations import activate
from spgcl.engine.convolutions import EncoderKind
from spgcl.engine.encoders import Activation, BatchNorm, Encoder, activation_module
from spgcl.engine.pair_products import inner_products
from spgcl.engine.sampling import sampled_rows
from spgcl.engine.tensors import GraphTensors, distinct
from spgcl.errors import InputError
from spgcl.methods.method import Method, Prepared
from spgcl.methods.parameters import parameters
from spgcl.methods.parts.captured_step import captured_loss, has_fixed_shapes
from spgcl.methods.parts.losses import single_pass_contrastive
from spgcl.methods.parts.pools import (
    Compared,
    cover_ratio,
    cut_at_random,
    neighbourhood_lists,
    neighbourhood_union,
    overlap_ratio,
    sample_nodes,
    top_similar,
    whole_rows,
)
from spgcl.methods.ranges import Count, Factor, Fraction, Positive, Size, SizesMemory, Width

# From about this size on, a step over all rows takes more than ten seconds of a core. Bounded neighbourhoods
# make a step cost the same on a graph of any size. Of the data sets only Twitch-gamers and Genius are larger.
LARGE_NODES, LARGE_EDGES = 50_000, 1_000_000
BOUNDED = {"batch_norm_rows": "pool", "fan_out": 10}
# Half of the width where embeddings would take more bytes than this; less width costs too much of the scores.
EMBEDDING_BYTES = 2**31


class SPGCL(Method):
    """One forward pass per step: similar nodes of a random neighbourhood attract, random ones repel.

    Args:
        num_features: Width of the graph's features.
        encoder: Graph convolution (f_theta).
        layers: Convolutions in the encoder.
        hidden: Width of the encoder, the head and the embedding.
        activation: Activation of the encoder.
        dropout: Fraction of activations dropped after every convolution.
        batch_norm: After every convolution: none, plain (no learnable scale, as in the paper), affine.
        batch_norm_rows: Whether its statistics come from all rows or from the rows that the pool needs.
        normalise_features: Divide feature rows by their L1 norm.
        head_input: Input of the projection head g: H, or its positive part.
        head_activation: Activation inside the projection head.
        seeds: Nodes drawn per step (b).
        hops: Reach of a seed's neighbourhood (T).
        pool: Union of the neighbourhoods, or their lists: a node occurs once per seed that reaches it.
        pool_size: Entries of the pool to keep, at random; 0 keeps all.
        fan_out: Random neighbours of a node that a hop goes to, and that a layer reads unless it is evaluated
            for all rows; 0 takes all. With it a step costs the same on a graph of any size.
        anchors: The nodes to compare: the seeds, or every entry of the pool.
        own_positive: Whether a node may be its own positive.
        positives: Most similar nodes that attract (K_pos).
        negatives: Random nodes that repel (K_neg).
        negatives_from: Whether those are drawn from the pool or from all nodes.
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
        self.steps, self.learning_rate, self.weight_decay = steps, learning_rate, weight_decay
        self.whole_graph = batch_norm != "none" and batch_norm_rows == "all"
        self.positive_part = head_input == "relu"
        self.seeds, self.hops, self.pool_as_set, self.pool_size = seeds, hops, pool == "set", pool_size
        self.anchors_are_seeds, self.own_positive = anchors == "seeds", own_positive
        self.positives, self.negatives, self.negative_weight = positives, negatives, negative_weight
        self.negatives_everywhere = negatives_from == "all"

    @classmethod
    def sized_defaults(cls, num_nodes: int, num_edges: int) -> dict[str, Any]:
        """Bounded neighbourhoods on large graphs, and a smaller width where embeddings would fill memory."""
        if num_nodes <= LARGE_NODES and num_edges <= LARGE_EDGES:
            return {}
        width = parameters(cls)["hidden"].default
        return {**BOUNDED, "hidden": width // 2} if 4 * width * num_nodes > EMBEDDING_BYTES else BOUNDED

    def is_static(self, prepared: Prepared) -> bool:
        """Whether steps on this graph have fixed shapes, so that CUDA captures one and replays it."""
        return has_fixed_shapes(self, prepared.graph)

    def needs_memory(self) -> str:
        """What to do to train on a graph larger than memory."""
        advice = "set batch_norm_rows=pool, as batch norm over all rows reads the whole graph"
        return advice if self.whole_graph else ""

    def loss(self, prepared: Prepared, step: int, generator: torch.Generator) -> Tensor:
        """Steps 1 to 5 of Algorithm 1; the pool comes first, so that only the rows it needs are encoded."""
        if self.is_static(prepared):
            return captured_loss(self, prepared, generator)
        seeds, pool = prepared.drawn or self.draw(prepared, generator)
        prepared.drawn = None
        if self.anchors_are_seeds or self.negatives_everywhere:
            return self._contrast(prepared, seeds, pool, generator)
        return self._pool_contrast(prepared, pool, generator)

    def draw(self, prepared: Prepared, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """The seeds and the pool of a step."""
        seeds = sample_nodes(prepared.graph.num_nodes, self.seeds, generator)
        return seeds, self._pool(prepared.graph, seeds, generator)

    def _pool(self, graph: GraphTensors, seeds: Tensor, generator: torch.Generator) -> Tensor:
        gather = neighbourhood_union if self.pool_as_set else neighbourhood_lists
        bounded = partial(sampled_rows, fan_out=self.fan_out, generator=generator)
        rows_of = bounded if self.fan_out else whole_rows
        reached = gather(graph.adjacency, seeds, self.hops, rows_of=rows_of)
        nodes = cut_at_random(reached, self.pool_size or None, generator)
        if len(nodes) < self.positives + (not self.own_positive):
            raise InputError(
                f"positives is {self.positives}, but this pool has {len(nodes)} nodes; "
                f"{_ways_to_more(nodes, graph)}"
            )
        return nodes

    def _pool_contrast(self, prepared: Prepared, pool: Tensor, generator: torch.Generator) -> Tensor:
        """The loss of a pool compared with itself: its distinct nodes stand for all of its entries."""
        nodes, indices = distinct(pool, prepared.graph.num_nodes)
        similarities = inner_products(self._project(prepared.graph, nodes, generator))
        nearest = self._nearest(prepared, similarities.detach().index_select(1, indices), nodes, pool)
        positive = similarities.gather(1, indices[nearest]).index_select(0, indices)
        columns = indices[self._drawn(len(pool), len(pool), generator)]
        entries = columns + indices[:, None] * len(nodes)
        negative = similarities.view(-1).index_select(0, entries.view(-1)).view_as(entries)
        return single_pass_contrastive(positive, negative, negative_weight=self.negative_weight)

    def _contrast(
        self, prepared: Prepared, seeds: Tensor, pool: Tensor, generator: torch.Generator
    ) -> Tensor:
        """The loss if anchors are the seeds, or negatives come from the whole graph."""
        graph = prepared.graph
        compared = self.compared(graph, seeds, pool, generator)
        nodes, indices = distinct(compared.nodes, graph.num_nodes)
        projected = self._project(graph, nodes, generator)
        similarities, negative = compared.similarities(projected, indices)
        nearest = self._nearest(prepared, similarities.detach(), compared.anchors, pool)
        positive = similarities.gather(1, nearest)
        if negative is None:
            negative = similarities.gather(1, self._drawn(len(pool), len(seeds), generator))
        return single_pass_contrastive(positive, negative, negative_weight=self.negative_weight)

    def compared(
        self, graph: GraphTensors, seeds: Tensor, pool: Tensor, generator: torch.Generator
    ) -> Compared:
        """The nodes that a step compares, with the negatives if these come from the whole graph."""
        anchors, negatives = seeds if self.anchors_are_seeds else pool, None
        if self.negatives_everywhere:
            negatives = self._drawn(graph.num_nodes, len(anchors), generator)
        return Compared(pool, seeds if self.anchors_are_seeds else None, negatives)

    def _drawn(self, total: int, num_anchors: int, generator: torch.Generator) -> Tensor:
        """Negatives: numbers below `total`, drawn with replacement, shape (anchors, K_neg)."""
        shape = (num_anchors, self.negatives)
        return torch.randint(total, shape, generator=generator, device=generator.device)

    def _project(self, graph: GraphTensors, nodes: Tensor, generator: torch.Generator) -> Tensor:
        """Z of distinct nodes."""
        return self._head(self.encoder(graph, nodes, generator, every_row=self.whole_graph))

    def _head(self, hidden: Tensor) -> Tensor:
        first, activation, second = self.head
        inner = activate(first(hidden.relu() if self.positive_part else hidden), activation)
        return normalize(second(inner), dim=1)

    def _nearest(self, prepared: Prepared, similarities: Tensor, anchors: Tensor, pool: Tensor) -> Tensor:
        """Entries of the pool that are most similar to every anchor."""
        same = None if self.own_positive else anchors[:, None] == pool[None, :]
        # A pool holds a node at most once per seed: only in a small one can copies leave too few others.
        if same is not None and len(pool) < self.positives + self.seeds:
            others = len(pool) - int(same.sum(dim=1).max())
            if others < self.positives:
                raise InputError(
                    f"positives is {self.positives}, but a node has only {others} others in this pool; "
                    f"{_ways_to_more(pool, prepared.graph)}"
                )
        chosen = top_similar(similarities, self.positives, same)
        if prepared.watching:
            nodes = pool[chosen]
            _remember(prepared, anchors[:, None] * prepared.graph.num_nodes + nodes, nodes)
        return chosen

    @torch.no_grad()
    def space(self, prepared: Prepared) -> Tensor:
        """Z, the normalised output of the head, in which positives are chosen."""
        return self._head(self.embed(prepared))

    def observe(self, prepared: Prepared) -> dict[str, float]:
        """Cover and overlap of the selected pairs, and the norm of every layer's weights."""
        numbers = {f"weight_norm_{layer}": norm for layer, norm in enumerate(self.encoder.weight_norms(), 1)}
        memory = prepared.memory
        if "covered" in memory:
            numbers["node_cover_ratio"] = cover_ratio(memory["covered"])
            numbers["overlapped_selection_ratio"] = overlap_ratio(memory["pairs"], memory["earlier_pairs"])
        return numbers


def _ways_to_more(nodes: Tensor, graph: GraphTensors) -> str:
    """What to do about a small pool; one of the whole graph cannot be raised."""
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
