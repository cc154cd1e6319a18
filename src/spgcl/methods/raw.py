"""The features as they are: what every other method has to beat."""

from typing import Any

import torch
from torch import Tensor

from spgcl.engine.tensors import GraphTensors, SparseMatrix
from spgcl.graph import Graph
from spgcl.methods.method import Method, Prepared
from spgcl.methods.smoothed import require_room


class Raw(Method):
    """The features themselves, dense; nothing is learned and no edge is looked at.

    Args:
        num_features: Width of the graph's features and of the embedding.
    """

    def __init__(self, num_features: int) -> None:
        super().__init__()

    def prepare(self, graph: Graph, device: torch.device, supervision: Any = None) -> Prepared:
        """Copy the features, if their dense form has room."""
        require_room(graph.num_nodes, graph.num_features)
        return Prepared(GraphTensors.of(graph, device))

    def embed(self, prepared: Prepared) -> Tensor:
        """X."""
        features = prepared.graph.features
        return features.dense() if isinstance(features, SparseMatrix) else features.clone()
