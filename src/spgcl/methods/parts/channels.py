"""What nodes and their surroundings show: channels of a graph, computed by propagation alone."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from spgcl.engine.similarity import comparable_rows
from spgcl.engine.tensors import GraphTensors, SparseMatrix
from spgcl.graph import Graph
from spgcl.graph.propagate import transitions

# With S = D^-1/2 (A + I) D^-1/2 and P = D^-1 A.
CHANNELS = {
    "own": "X, the node's own features",
    "one hop": "S X, smoothed once with the node itself",
    "two hops": "S^2 X, smoothed twice with the node itself",
    "neighbours": "P X, the mean over neighbours without the node",
    "their neighbours": "P^2 X, the mean over the neighbours of neighbours",
    "region": "the mean of S X ... S^16 X, with a twentieth of X",
    "degrees": "the degrees of the node, of its neighbours and of theirs",
}
# Coarse ones repeat themselves well even where they tell little, see `spgcl.methods.parts.weights`.
COARSE = ("region", "degrees")
REGION_HOPS = 16
OWN_IN_REGION = 0.05
# A degree is described by how near its logarithm is to each of so many centres.
DEGREE_CENTRES = 8
LEAST_WIDTH = 0.1


@dataclass(frozen=True, eq=False)
class Surroundings:
    """The matrices that carry features along edges, on a device.

    Attributes:
        smoothing: S.
        transitions: P.
        log_degrees: log(1 + degree) of every node; weights count.
    """

    smoothing: SparseMatrix
    transitions: SparseMatrix
    log_degrees: Tensor

    @classmethod
    def of(cls, graph: Graph, tensors: GraphTensors) -> "Surroundings":
        """The matrices of a graph; its tensors have the first."""
        device = tensors.device
        degrees = np.log1p(graph.adjacency.sum(axis=1, dtype=np.float64)).astype(np.float32)
        return cls(
            tensors.adjacency,
            SparseMatrix.of(transitions(graph), device),
            torch.as_tensor(degrees, device=device),
        )

    def channels(self, features: Tensor, centres: Tensor, degree_means: Tensor) -> Iterator[Tensor]:
        """One matrix per entry of CHANNELS, in their order, each with rows of length 1 or 0.

        Args:
            features: Dense features.
            centres: Of the degrees, see `degree_centres`.
            degree_means: Column means that are subtracted from the degrees, see `degrees`.
        """
        current, total = features, torch.zeros_like(features)
        yield unit(features)
        for hop in range(1, REGION_HOPS + 1):
            current = self.smoothing @ current
            total += current
            if hop <= 2:
                yield unit(current)
        near = self.transitions @ features
        yield unit(near)
        yield unit(self.transitions @ near)
        yield unit(total.div_(REGION_HOPS).add_(features, alpha=OWN_IN_REGION))
        yield unit(self.degrees(centres) - degree_means)

    def degrees(self, centres: Tensor) -> Tensor:
        """Degrees of every node, of its neighbours and of theirs, as nearness to the centres."""
        own = nearness(self.log_degrees, centres)
        near = self.transitions @ own
        return torch.cat([own, near, self.transitions @ near], dim=1)

    def degree_centres(self) -> Tensor:
        """See the function of that name."""
        return degree_centres(self.log_degrees)


def degree_centres(log_degrees: Tensor) -> Tensor:
    """Evenly spaced log degrees, without the outermost hundredth of the nodes at either end."""
    ends = torch.tensor([0.01, 0.99], device=log_degrees.device)
    # `quantile` is limited to 16 million entries.
    first, last = log_degrees[:: 1 + len(log_degrees) // 2**23].quantile(ends).tolist()
    return torch.linspace(first, last, DEGREE_CENTRES, device=log_degrees.device)


def nearness(log_degrees: Tensor, centres: Tensor) -> Tensor:
    """How near each log degree is to every centre."""
    width = ((centres[-1] - centres[0]) / (DEGREE_CENTRES - 1)).clamp(min=LEAST_WIDTH)
    return torch.exp(-0.5 * ((log_degrees[:, None] - centres) / width) ** 2)


def widths(num_features: int) -> list[int]:
    """Columns of every channel."""
    return [3 * DEGREE_CENTRES if name == "degrees" else num_features for name in CHANNELS]


def dense(features: Tensor | SparseMatrix) -> Tensor:
    """Features of a graph with their zeros."""
    return features.dense() if isinstance(features, SparseMatrix) else features


def unit(rows: Tensor) -> Tensor:
    """Rows of length 1 or 0."""
    return normalize(comparable_rows(rows), dim=1)
