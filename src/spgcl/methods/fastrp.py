"""FastRP: a very sparse random projection of powers of the transition matrix (Chen et al., CIKM 2019)."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spgcl.engine.tensors import GraphTensors, SparseMatrix
from spgcl.graph import Graph
from spgcl.graph.propagate import transitions
from spgcl.methods.memory import require_bytes
from spgcl.methods.method import Method, Prepared
from spgcl.methods.ranges import Width


@dataclass(eq=False, kw_only=True)
class PreparedFastRP(Prepared):
    """A graph with the matrices of the projection.

    Attributes:
        transitions: D^-1 A; rows of nodes without (out-)neighbours are empty.
        strengths: Sum of the weights of the edges that lead to every node.
    """

    transitions: SparseMatrix
    strengths: Tensor


class FastRP(Method[PreparedFastRP]):
    """A weighted sum of randomly projected powers of the transition matrix; features are not used.

    Args:
        hidden: Width of the embedding (d).
        first_weight: Weight of the first power (alpha_1).
        second_weight: Weight of the second power (alpha_2).
        third_weight: Weight of the third power (alpha_3).
        fourth_weight: Weight of the fourth power (alpha_4).
        degree_penalty: How much less nodes of high degree count (-beta).
    """

    inductive = False
    reads_features = False
    seed: Tensor

    def __init__(
        self,
        num_features: int,
        *,
        hidden: Width = 512,
        first_weight: float = 1.0,
        second_weight: float = 1.0,
        third_weight: float = 7.81,
        fourth_weight: float = 45.28,
        degree_penalty: float = 0.628,
    ) -> None:
        super().__init__()
        self.hidden, self.degree_penalty = hidden, degree_penalty
        self.powers = (first_weight, second_weight, third_weight, fourth_weight)
        # A saved run keeps only this seed of the projection.
        self.register_buffer("seed", torch.randint(2**62, ()))

    def prepare(self, graph: Graph, device: torch.device, supervision: Any = None) -> PreparedFastRP:
        """Divide the rows of the adjacency by their sums, if memory suffices for the embeddings."""
        # The projection, its product with a power of the transitions, and the sum of these.
        needed = 3 * 4 * graph.num_nodes * self.hidden
        require_bytes("the sum of projections", needed, ["hidden"])
        arrivals = graph.adjacency.sum(axis=0, dtype=np.float64)
        return PreparedFastRP(
            GraphTensors.of(graph, device),
            transitions=SparseMatrix.of(transitions(graph), device),
            strengths=torch.as_tensor(arrivals.astype(np.float32), device=device),
        )

    @torch.no_grad()
    def embed(self, prepared: PreparedFastRP) -> Tensor:
        """Algorithm 1, and columns of mean 0 and deviation 1, as in the authors' code."""
        generator = torch.Generator().manual_seed(int(self.seed))
        projection = very_sparse_projection(prepared.graph.num_nodes, self.hidden, generator)
        vectors = projected_powers(
            prepared.transitions,
            prepared.strengths,
            projection.to(prepared.graph.device),
            self.powers,
            degree_penalty=self.degree_penalty,
        )
        vectors -= vectors.mean(dim=0)
        return vectors / vectors.std(dim=0, correction=0).clamp(min=torch.finfo(vectors.dtype).tiny)


def very_sparse_projection(num_nodes: int, width: int, generator: torch.Generator) -> Tensor:
    """The random matrix R: with s = sqrt(num_nodes), one entry in s is + or - sqrt(s), the others are 0."""
    rarity = math.sqrt(num_nodes)
    draws = torch.rand(num_nodes, width, generator=generator)
    signs = (draws < 0.5 / rarity).float() - (draws >= 1 - 0.5 / rarity).float()
    return signs * math.sqrt(rarity)


def projected_powers(
    transitions: SparseMatrix,
    strengths: Tensor,
    projection: Tensor,
    weights: tuple[float, ...],
    *,
    degree_penalty: float,
) -> Tensor:
    """Sum over k of weights[k] P^(k + 1) L R, with P the transitions and L the powers of relative degrees."""
    scale = torch.where(strengths > 0, (strengths / strengths.sum()) ** -degree_penalty, 0)
    current = scale[:, None] * projection
    total = torch.zeros_like(projection)
    for weight in weights:
        current = transitions @ current
        total += weight * current
    return total
