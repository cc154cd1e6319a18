"""GRACE: deep graph contrastive representation learning (Zhu et al., 2020)."""

import torch
from torch import Tensor, nn

from spgcl.engine.encoders import Activation, BatchNorm
from spgcl.engine.tensors import GraphTensors
from spgcl.methods.method import Method, Prepared
from spgcl.methods.parts.augment import drop_edges, mask_features
from spgcl.methods.parts.encoders import gcn_encoder
from spgcl.methods.parts.node_contrast import CONTRAST_PRODUCTS, node_contrast, projection_head
from spgcl.methods.ranges import Count, Factor, Fraction, Positive, Width


class GRACE(Method):
    """Two views by removed edges and masked features; a node is told from all others of both views.

    Args:
        num_features: Width of the graph's features.
        hidden: Width of the embedding.
        widening: How many times as wide the encoder's first layer is.
        projection: Width inside the projection head (g).
        activation: Activation of the encoder.
        batch_norm: After every layer: none, without learnable scale and shift, or with them.
        normalise_features: Divide feature rows by their L1 norm.
        drop_edges_first: Share of edges removed in the first view (p_r).
        drop_edges_second: The same in the second view.
        mask_features_first: Share of feature columns set to zero in the first view (p_m).
        mask_features_second: The same in the second view.
        temperature: What similarities are divided by (tau).
        steps: Updates of the weights.
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
        projection: Width = 256,
        activation: Activation = "relu",
        batch_norm: BatchNorm = "plain",
        normalise_features: bool = True,
        drop_edges_first: Fraction = 0.1,
        drop_edges_second: Fraction = 0.4,
        mask_features_first: Fraction = 0.1,
        mask_features_second: Fraction = 0.0,
        temperature: Positive = 0.7,
        steps: Count = 1000,
        learning_rate: Positive = 1e-3,
        weight_decay: float = 1e-5,
    ) -> None:
        super().__init__()
        self.encoder = gcn_encoder(
            num_features, hidden, activation=activation, batch_norm=batch_norm, widening=widening
        )
        self.head = projection_head(hidden, projection, nn.ELU())
        self.normalise_features = normalise_features
        self.rates = (
            (drop_edges_first, mask_features_first),
            (drop_edges_second, mask_features_second),
        )
        self.temperature = temperature
        self.products_a_pair = CONTRAST_PRODUCTS * hidden
        self.steps, self.learning_rate, self.weight_decay = steps, learning_rate, weight_decay

    def loss(self, prepared: Prepared, step: int, generator: torch.Generator) -> Tensor:
        """Algorithm 1 of the paper: two views, one encoder and head, the objective."""
        first, second = (
            self.head(self.encoder(self._view(prepared.graph, *rates, generator), None, generator))
            for rates in self.rates
        )
        return node_contrast(first, second, temperature=self.temperature)

    @torch.no_grad()
    def space(self, prepared: Prepared) -> Tensor:
        """Output of the head, which the objective compares."""
        projected: Tensor = self.head(self.embed(prepared))
        return projected

    def _view(
        self, graph: GraphTensors, edge_rate: float, feature_rate: float, generator: torch.Generator
    ) -> GraphTensors:
        return mask_features(drop_edges(graph, edge_rate, generator), feature_rate, generator)
