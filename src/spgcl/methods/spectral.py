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
class PreparedSpectral(Prepared):
    """A graph and the coordinates of its nodes."""

    vectors: Tensor


class Spectral(Method[PreparedSpectral]):
    """Leading eigenvectors of D^-1/2 A D^-1/2, one per column; features are not used.

    Args:
        hidden: Number of eigenvectors and width of the embedding; fewer on a smaller graph.
    """

    inductive = False
    reads_features = False

    def __init__(self, num_features: int, *, hidden: Width = 128) -> None:
        super().__init__()
        self.hidden = hidden

    def prepare(self, graph: Graph, device: torch.device, supervision: Any = None) -> PreparedSpectral:
        """Solve for the eigenvectors on the host, if memory suffices."""
        # The solver keeps three blocks of them in float64.
        needed = 3 * 8 * graph.num_nodes * min(self.hidden, graph.num_nodes)
        require_bytes("the eigensolver", needed, ["hidden"])
        vectors = torch.as_tensor(spectral_features(graph.adjacency, self.hidden), device=device)
        return PreparedSpectral(GraphTensors.of(graph, device), vectors=vectors)

    def embed(self, prepared: PreparedSpectral) -> Tensor:
        """The eigenvectors."""
        return prepared.vectors.clone()
