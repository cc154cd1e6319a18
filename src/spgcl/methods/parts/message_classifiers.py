"""Classifiers of message-passing layers: networks that share no weights, one per split."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from spgcl.engine.convolutions import Block, EncoderKind, layer_of
from spgcl.engine.encoders import drop
from spgcl.engine.tensors import GraphTensors, SparseMatrix
from spgcl.errors import InputError


class MessageClassifiers(nn.Module):
    """Two-layer networks of a kind, one after the other, each with its best weights so far.

    Args:
        num_features: Width of the graph's features.
        shape: How many networks, the width of their first layer, and how many classes they predict.
        kind: Of their layers.
        dropout: Fraction of each layer's inputs dropped in training.
    """

    def __init__(
        self, num_features: int, shape: tuple[int, int, int], *, kind: EncoderKind, dropout: float
    ) -> None:
        super().__init__()
        num_models, hidden, num_classes = shape
        self.kind, self.dropout = kind, dropout
        self.networks = nn.ModuleList(
            _Network(kind, num_features, hidden, num_classes, dropout) for _ in range(num_models)
        )
        for name, weights in list(self.networks.named_parameters()):
            self.register_buffer(_best(name), weights.detach().clone())
        self.register_buffer("best_right", torch.full((num_models,), -1))
        self.register_buffer("best_loss", torch.zeros(num_models))

    def forward(self, graph: GraphTensors, generator: torch.Generator | None) -> Tensor:
        """Class scores, shape (nodes, models, classes), with dropout if a generator is given."""
        inputs = self._inputs(graph, generator)
        scores = [network(graph, inputs, generator) for network in self.networks]
        return torch.stack(scores, dim=1)

    def best(self, graph: GraphTensors) -> Tensor:
        """Class scores by the weights that were best on validation nodes."""
        inputs, kept = self._inputs(graph, None), dict(self.named_buffers())
        scores = []
        for index, network in enumerate(self.networks):
            weights = {name: kept[_best(f"{index}.{name}")] for name, _ in network.named_parameters()}
            scores.append(functional_call(network, weights, (graph, inputs, None)))
        return torch.stack(scores, dim=1)

    @torch.no_grad()
    def keep(self, models: Tensor) -> None:
        """Keep the weights of those models, given as a mask."""
        kept = dict(self.named_buffers())
        for name, weights in self.networks.named_parameters():
            index = int(name.partition(".")[0])
            kept[_best(name)].copy_(torch.where(models[index], weights, kept[_best(name)]))

    def weights(self) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
        """The parameters of the first layers, which decay, and all others."""
        first = [weight for name, weight in self.networks.named_parameters() if ".first." in name]
        rest = [weight for name, weight in self.networks.named_parameters() if ".first." not in name]
        return first, rest

    def _inputs(self, graph: GraphTensors, generator: torch.Generator | None) -> Tensor:
        """Features, the same for all models in a step."""
        if graph.weighted:
            raise InputError(
                f"{self.kind} layers cannot use edge weights; take encoder=gcn or drop the weights"
            )
        features = graph.features.dense() if isinstance(graph.features, SparseMatrix) else graph.features
        return features if generator is None else drop(features, self.dropout, generator)


class _Network(nn.Module):
    """Two layers with a ReLU between them."""

    def __init__(
        self, kind: EncoderKind, num_features: int, hidden: int, num_classes: int, dropout: float
    ) -> None:
        super().__init__()
        self.first = layer_of(kind, num_features, hidden)
        self.second = layer_of(kind, hidden, num_classes)
        self.dropout = dropout

    def forward(self, graph: GraphTensors, inputs: Tensor, generator: torch.Generator | None) -> Any:
        block = Block(graph.adjacency)
        hidden = self.first(inputs, block).relu()
        return self.second(hidden if generator is None else drop(hidden, self.dropout, generator), block)


def _best(name: str) -> str:
    return f"best_{name.replace('.', '_')}"
