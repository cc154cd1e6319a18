"""FastRP: a very sparse random projection of powers of the transition matrix (Chen et al., CIKM 2019)."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from spgcl.engine.tensors import GraphTensors, SparseMatrix
from spgcl.graph import Graph
from spgcl.methods.memory import require_bytes
from spgcl.methods.method import Method, Prepared
from spgcl.methods.ranges import Width


@dataclass(eq=False, kw_only=True)
class TransitionPrepared(Prepared):
    """A graph with what a projection needs of it.

    Attributes:
        transitions: D^-1 A; rows of nodes without (out-)neighbours are empty.
        strengths: Sum of the weights of the edges that lead to every node.
    """

    transitions: SparseMatrix
    strengths: Tensor


class FastRP(Method):
    """A weighted sum of randomly projected powers of the transition matrix; features are not looked at.

    Args:
        num_features: Width of the graph's features; not looked at.
        hidden: Width of the embedding (d).
        first_weight: Weight of the first power (alpha_1).
        second_weight: Weight of the second power (alpha_2).
        third_weight: Weight of the third power (alpha_3).
        fourth_weight: Weight of the fourth power (alpha_4).
        degree_penalty: How much nodes of high degree are toned down (-beta).
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
        # The projection is drawn again from this number, which is all that a saved run has to keep of it.
        self.register_buffer("seed", torch.randint(2**62, ()))

    def prepare(self, graph: Graph, device: torch.device, supervision: Any = None) -> Prepared:
        """Divide the rows of the adjacency by their sums, if the embeddings will have room."""
        # The projection, a power of the transitions times it, and their sum.
        needed = 3 * 4 * graph.num_nodes * self.hidden
        require_bytes(type(self), "the embeddings and what they are added up from", needed)
        adjacency = graph.adjacency
        departures, arrivals = (adjacency.sum(axis=axis, dtype=np.float64) for axis in (1, 0))
        scale = np.divide(1, departures, out=np.zeros_like(departures), where=departures > 0)
        transitions = sparse.csr_array(sparse.diags_array(scale) @ adjacency, dtype=np.float32)
        return TransitionPrepared(
            GraphTensors.of(graph, device),
            transitions=SparseMatrix.of(transitions, device),
            strengths=torch.as_tensor(arrivals.astype(np.float32), device=device),
        )

    @torch.no_grad()
    def embed(self, prepared: Prepared) -> Tensor:
        """Algorithm 1, and columns of mean 0 and deviation 1, as in the authors' code."""
        assert isinstance(prepared, TransitionPrepared)
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
    """The random matrix R: with s = sqrt(num_nodes), one entry in s is not zero, and then + or - sqrt(s)."""
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
