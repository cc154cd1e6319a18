"""Eigenvectors of the normalised adjacency as coordinates of the nodes."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from spgcl.engine.tensors import GraphTensors
from spgcl.graph import Graph
from spgcl.graph.structural import spectral_features
from spgcl.methods.memory import require_bytes
from spgcl.methods.method import Method, Prepared
from spgcl.methods.ranges import Width


@dataclass(eq=False, kw_only=True)
class SpectralPrepared(Prepared):
    """A graph and the coordinates of its nodes."""

    vectors: Tensor


class Spectral(Method):
    """Leading eigenvectors of D^-1/2 A D^-1/2, one a column; features are not looked at.

    Args:
        num_features: Width of the graph's features; not looked at.
        hidden: Eigenvectors, and with them the width of the embedding; fewer on a smaller graph.
    """

    inductive = False
    reads_features = False

    def __init__(self, num_features: int, *, hidden: Width = 128) -> None:
        super().__init__()
        self.hidden = hidden

    def prepare(self, graph: Graph, device: torch.device, supervision: Any = None) -> Prepared:
        """Solve for the eigenvectors, on the host, if they have room."""
        # The solver has three blocks of them at once, in float64.
        needed = 3 * 8 * graph.num_nodes * min(self.hidden, graph.num_nodes)
        require_bytes(type(self), "the eigenvectors alone", needed)
        vectors = torch.as_tensor(spectral_features(graph.adjacency, self.hidden), device=device)
        return SpectralPrepared(GraphTensors.of(graph, device), vectors=vectors)

    def embed(self, prepared: Prepared) -> Tensor:
        """The eigenvectors."""
        assert isinstance(prepared, SpectralPrepared)
        return prepared.vectors.clone()
