"""BGRL: bootstrapped graph latents (Thakoor et al., ICLR 2022)."""

from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity

from spgcl.engine.encoders import BatchNorm, Encoder
from spgcl.engine.tensors import GraphTensors
from spgcl.methods.method import Method, Prepared
from spgcl.methods.parts.augment import random_view
from spgcl.methods.parts.schedules import cosine_schedule, move_average
from spgcl.methods.ranges import Count, Fraction, Positive, Width


def bootstrap_loss(predictions: Tensor, targets: Tensor) -> Tensor:
    """One direction of Eq. 1: one minus the mean cosine of every prediction with its target.

    Args:
        predictions: The predictor's output for one view, shape (nodes, width).
        targets: The target encoder's embeddings of the other view, same shape.
    """
    return 1 - cosine_similarity(predictions, targets, dim=-1).mean()


class BGRL(Method):
    """An online encoder predicts, from one view, a slowly moving target encoder's embedding of the other.

    Args:
        hidden: Width of the first convolution.
        embedding_width: Width of the second convolution and of the embedding.
        predictor_width: Hidden width of the predictor.
        drop_edges_1: Fraction of edges removed in the first view (p_e,1).
        drop_edges_2: Fraction of edges removed in the second view (p_e,2).
        mask_features_1: Fraction of feature columns masked in the first view (p_f,1).
        mask_features_2: Fraction of feature columns masked in the second view (p_f,2).
        decay: Decay of the target's moving average at the start (tau); it rises to 1 along a cosine.
        warm_up: Fraction of the steps in which the learning rate rises, before it falls along a cosine.
        learning_rate: Of AdamW, at its peak.
    """

    static = True

    def __init__(
        self,
        num_features: int,
        *,
        hidden: Width = 512,
        embedding_width: Width = 1024,
        predictor_width: Width = 512,
        batch_norm: BatchNorm = "plain",
        normalise_features: bool = True,
        drop_edges_1: Fraction = 0.4,
        drop_edges_2: Fraction = 0.6,
        mask_features_1: Fraction = 0.1,
        mask_features_2: Fraction = 0.5,
        decay: Fraction = 0.97,
        warm_up: Fraction = 0.1,
        steps: Count = 200,
        learning_rate: Positive = 1e-3,
        weight_decay: float = 1e-3,
    ) -> None:
        super().__init__(steps, learning_rate, weight_decay, normalise_features)
        widths = (num_features, hidden, embedding_width)
        self.online = _convolutions(*widths, batch_norm)
        # With its own random weights, as in the published code: not a copy of the online encoder.
        self.target = _convolutions(*widths, batch_norm).requires_grad_(False)
        self.predictor = nn.Sequential(
            nn.Linear(embedding_width, predictor_width),
            nn.PReLU(),
            nn.Linear(predictor_width, embedding_width),
        )
        self.rates = ((drop_edges_1, mask_features_1), (drop_edges_2, mask_features_2))
        self.decay, self.warm_up = decay, warm_up

    def loss(self, prepared: Prepared, step: int, generator: torch.Generator) -> Tensor:
        """Eq. 1 in both directions."""
        first, second = (random_view(prepared.graph, *rates, generator) for rates in self.rates)
        with torch.no_grad():
            first_targets, second_targets = encode(self.target, first), encode(self.target, second)
        first_predictions = self.predictor(encode(self.online, first))
        second_predictions = self.predictor(encode(self.online, second))
        return bootstrap_loss(first_predictions, second_targets) + bootstrap_loss(
            second_predictions, first_targets
        )

    def learning_rate_at(self, step: int) -> float:
        """A rise over the first steps, then half a cosine down to zero."""
        return self.learning_rate * cosine_schedule(step, self.steps, self.warm_up * self.steps)

    def after_step(self, step: int) -> None:
        """Move the target (Eq. 3)."""
        move_average(self.target, self.online, 1 - (1 - self.decay) * cosine_schedule(step, self.steps))

    @torch.no_grad()
    def embed(self, prepared: Prepared) -> Tensor:
        """The output of the online encoder on the whole graph."""
        training = self.online.training
        embeddings = encode(self.online.eval(), prepared.graph)
        self.online.train(training)
        return embeddings


def encode(layers: nn.Module, graph: GraphTensors) -> Tensor:
    """Embeddings of all nodes by one-layer encoders, each of which reads the output of the one before."""
    for layer in layers.children():
        graph = replace(graph, features=layer(graph, None, None))
    assert isinstance(graph.features, Tensor)
    return graph.features


def _convolutions(num_features: int, hidden: int, width: int, batch_norm: BatchNorm) -> nn.ModuleList:
    """Two convolutions of different widths, each with its own normalisation and activation."""
    return nn.ModuleList(
        Encoder(inputs, hidden=outputs, layers=1, batch_norm=batch_norm)
        for inputs, outputs in ((num_features, hidden), (hidden, width))
    )
