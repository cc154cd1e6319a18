"""GraphCL: graph contrastive learning with augmentations (You et al., NeurIPS 2020), node against node."""

from typing import Literal

import torch
from torch import Tensor, nn

from spgcl.engine.encoders import Activation, BatchNorm, Encoder
from spgcl.engine.tensors import GraphTensors
from spgcl.methods.method import Method, Prepared
from spgcl.methods.parts.augment import (
    add_edges,
    drop_edges,
    drop_features,
    keep_nodes,
    random_nodes,
    walked_nodes,
)
from spgcl.methods.parts.node_contrast import CONTRAST_PRODUCTS, node_contrast, projection_head
from spgcl.methods.ranges import Count, Fraction, Positive, Width

Augmentation = Literal["nodes", "edges", "attributes", "subgraph", "any"]
KINDS: tuple[Augmentation, ...] = ("nodes", "edges", "attributes", "subgraph")


class GraphCL(Method):
    """Two views by two of four augmentations; a node that is in both is contrasted with all others.

    Args:
        first_view: What makes the first view: nodes dropped, edges perturbed, attributes masked, a subgraph
            of random walks, or any of these, drawn at every step.
        second_view: What makes the second view.
        rate: Fraction of nodes, edges or attributes that an augmentation removes.
        projection: Width inside the projection head (g).
        temperature: What similarities are divided by (tau).
        learning_rate: Of Adam.
        weight_decay: Of Adam, as a gradient of the squared weights.
    """

    decoupled_decay = False

    def __init__(
        self,
        num_features: int,
        *,
        hidden: Width = 1024,
        projection: Width = 512,
        activation: Activation = "relu",
        batch_norm: BatchNorm = "plain",
        normalise_features: bool = True,
        first_view: Augmentation = "any",
        second_view: Augmentation = "any",
        rate: Fraction = 0.3,
        temperature: Positive = 0.2,
        steps: Count = 50,
        learning_rate: Positive = 3e-4,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(steps, learning_rate, weight_decay, normalise_features)
        self.encoder = Encoder(num_features, hidden=hidden, activation=activation, batch_norm=batch_norm)
        self.head = projection_head(hidden, projection, nn.ReLU())
        self.views, self.rate = (first_view, second_view), rate
        self.temperature = temperature
        self.products_per_pair = CONTRAST_PRODUCTS * hidden

    def loss(self, prepared: Prepared, step: int, generator: torch.Generator) -> Tensor:
        """Two views, one encoder and head, the objective over the nodes that both views kept."""
        graph = prepared.graph
        views = [view_of(graph, kind, self.rate, generator) for kind in self.views]
        shared = (views[0][1] & views[1][1]).nonzero().reshape(-1)
        if not len(shared):
            # Two views of a tiny graph, or at a high rate, may share no node; then all are compared.
            shared = torch.arange(graph.num_nodes, device=graph.device)
        first, second = (self.head(self.encoder(view, None, generator)[shared]) for view, _ in views)
        return node_contrast(first, second, temperature=self.temperature)


def view_of(
    graph: GraphTensors, kind: Augmentation, rate: float, generator: torch.Generator
) -> tuple[GraphTensors, Tensor]:
    """A view by one augmentation, and the mask of the nodes that are in it."""
    if kind == "any":
        drawn = torch.randint(len(KINDS), (), generator=generator, device=graph.device)
        return view_of(graph, KINDS[int(drawn)], rate, generator)
    if kind in ("nodes", "subgraph"):
        choose = random_nodes if kind == "nodes" else walked_nodes
        kept = choose(graph, 1 - rate, generator)
        return keep_nodes(graph, kept), kept
    every = torch.ones(graph.num_nodes, dtype=torch.bool, device=graph.device)
    if kind == "attributes":
        return drop_features(graph, rate, generator), every
    return add_edges(drop_edges(graph, rate / 2, generator), rate / 2, generator), every
