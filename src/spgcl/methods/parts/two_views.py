"""What GRACE and GCA share: contrast between two views of a graph, made at random at every step."""

from typing import Any

import torch
from torch import Tensor, nn

from spgcl.engine.encoders import Activation, BatchNorm, Encoder
from spgcl.engine.tensors import GraphTensors
from spgcl.methods.method import Method
from spgcl.methods.parts.augment import random_view
from spgcl.methods.parts.node_contrast import CONTRAST_PRODUCTS, node_contrast, projection_head
from spgcl.methods.ranges import Count, Factor, Fraction, Positive, Width


class TwoViews(Method):
    """Two views by removed edges and masked features; a node is contrasted with all others of both views.

    Args:
        widening: How many times as wide the encoder's first layer is.
        projection: Width inside the projection head (g).
        drop_edges_first: Fraction of edges removed in the first view (p_r).
        drop_edges_second: The same in the second view.
        mask_features_first: Fraction of feature columns set to zero in the first view (p_m).
        mask_features_second: The same in the second view.
        temperature: What similarities are divided by (tau).
        learning_rate: Of Adam.
        weight_decay: Of Adam, as a gradient of the squared weights.
    """

    static = True
    decoupled_decay = False

    def __init__(
        self,
        num_features: int,
        *,
        hidden: Width = 256,
        widening: Factor = 1,
        projection: Width = 32,
        activation: Activation = "prelu",
        batch_norm: BatchNorm = "plain",
        normalise_features: bool = True,
        drop_edges_first: Fraction = 0.2,
        drop_edges_second: Fraction = 0.2,
        mask_features_first: Fraction = 0.5,
        mask_features_second: Fraction = 0.5,
        temperature: Positive = 0.4,
        steps: Count = 200,
        learning_rate: Positive = 1e-3,
        weight_decay: float = 1e-5,
    ) -> None:
        super().__init__(steps, learning_rate, weight_decay, normalise_features)
        self.encoder = Encoder(
            num_features, hidden=hidden, activation=activation, batch_norm=batch_norm, widening=widening
        )
        self.head = projection_head(hidden, projection, nn.ELU())
        self.rates = ((drop_edges_first, mask_features_first), (drop_edges_second, mask_features_second))
        self.temperature = temperature
        self.products_per_pair = CONTRAST_PRODUCTS * hidden

    def view(
        self, prepared: Any, edge_rate: float, column_rate: float, generator: torch.Generator
    ) -> GraphTensors:
        """A view from which every edge, and every feature column, is removed with the same probability."""
        return random_view(prepared.graph, edge_rate, column_rate, generator)

    def loss(self, prepared: Any, step: int, generator: torch.Generator) -> Tensor:
        """Algorithm 1 of both papers: two views, one encoder and head, the objective."""
        views = (self.view(prepared, *rates, generator) for rates in self.rates)
        first, second = (self.head(self.encoder(view, None, generator)) for view in views)
        return node_contrast(first, second, temperature=self.temperature)
