"""GCN: a graph convolutional network trained on labels, end to end (Kipf and Welling, ICLR 2017)."""

from typing import Any

import torch
from torch import Tensor

from spgcl.engine.optimiser import Adam
from spgcl.graph import Graph
from spgcl.methods.method import Method, Prepared
from spgcl.methods.ranges import Count, Fraction, Positive, Width
from spgcl.methods.supervised import Classifiers, PreparedTargets, first_layer_decay, training_loss


class SupervisedGCN(Method):
    """Two graph convolutions that predict classes, one model a split, trained on its labels.

    Args:
        num_features: Width of the graph's features.
        num_models: How many models, each with labels of its own.
        num_classes: How many classes they tell apart.
        hidden: Width of the first convolution.
        dropout: Share of each convolution's inputs that is dropped in training.
        normalise_features: Divide feature rows by their L1 norm.
        steps: Updates of the weights; a model keeps those of its best step on the validation nodes.
        learning_rate: Of Adam.
        weight_decay: L2 strength on the first convolution's weights.
    """

    supervised = True
    static = True

    def __init__(
        self,
        num_features: int,
        num_models: int,
        num_classes: int,
        *,
        hidden: Width = 64,
        dropout: Fraction = 0.5,
        normalise_features: bool = False,
        steps: Count = 200,
        learning_rate: Positive = 0.01,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__()
        self.classifiers = Classifiers(
            num_features, num_models, num_classes, hidden=hidden, dropout=dropout, propagate=True
        )
        self.normalise_features = normalise_features
        self.steps, self.learning_rate, self.weight_decay = steps, learning_rate, weight_decay

    def prepare(self, graph: Graph, device: torch.device, supervision: Any = None) -> PreparedTargets:
        """Normalise the adjacency and, if asked, the features; lay the labels out by model."""
        return PreparedTargets.of(graph, device, supervision, normalise_features=self.normalise_features)

    def loss(self, prepared: Prepared, step: int, generator: torch.Generator) -> Tensor:
        """The models' cross-entropies on their training nodes, added up (Eq. 10)."""
        return training_loss(self.classifiers, prepared, generator)

    def optimiser(self) -> Adam:
        """Adam, with decay of the first layer alone."""
        return first_layer_decay(self.classifiers, self.learning_rate, self.weight_decay)

    def after_step(self, step: int) -> None:
        """Keep the weights of the models that are better on validation than ever."""
        self.classifiers.keep_best()

    @torch.no_grad()
    def embed(self, prepared: Prepared) -> Tensor:
        """Class scores (logits) of all models side by side, shape (nodes, models * classes)."""
        return self.classifiers.best(prepared.graph).flatten(1)
