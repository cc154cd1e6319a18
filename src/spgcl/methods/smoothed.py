"""Features as they are, or averaged over neighbourhoods (Wu et al., ICML 2019, without the classifier)."""

from typing import Annotated, Any

import torch
from torch import Tensor
from torch.nn.functional import normalize

from spgcl.engine.similarity import comparable_rows
from spgcl.engine.tensors import SparseMatrix
from spgcl.errors import InputError
from spgcl.graph import Graph
from spgcl.methods.method import Method, Prepared
from spgcl.methods.ranges import SizesMemory

MOST_BYTES = 8 * 2**30


class Smoothed(Method[Prepared]):
    """Features after k hops of the normalised adjacency, or those of all hops side by side.

    Args:
        hops: Propagations (K).
        joined: Whether to concatenate X, SX ... S^K X instead of taking S^K X alone.
    """

    def __init__(
        self, num_features: int, *, hops: Annotated[int, SizesMemory.STEP] = 2, joined: bool = False
    ) -> None:
        super().__init__()
        self.hops, self.joined = hops, joined

    def prepare(self, graph: Graph, device: torch.device, supervision: Any = None) -> Prepared:
        """Normalise the adjacency, if memory suffices for the result."""
        advice = "lower hops or leave joined out, or " if self._blocks > 1 else ""
        _require_dense(graph.num_nodes, graph.num_features * self._blocks, advice)
        return super().prepare(graph, device)

    @torch.no_grad()
    def embed(self, prepared: Prepared) -> Tensor:
        """The blocks, each with rows of length 1."""
        graph = prepared.graph
        current = graph.features.dense() if isinstance(graph.features, SparseMatrix) else graph.features
        width = current.shape[1]
        result = current.new_empty(graph.num_nodes, width * self._blocks)
        for hop in range(self.hops + 1):
            if hop:
                current = graph.adjacency @ current
            if self.joined or hop == self.hops:
                start = hop * width if self.joined else 0
                normalize(comparable_rows(current), dim=1, out=result[:, start : start + width])
        return result

    @property
    def _blocks(self) -> int:
        return self.hops + 1 if self.joined else 1


class Raw(Method[Prepared]):
    """The features themselves, dense; nothing is learned and edges are not used."""

    def __init__(self, num_features: int) -> None:
        super().__init__()

    def prepare(self, graph: Graph, device: torch.device, supervision: Any = None) -> Prepared:
        """Copy the features, if memory suffices for their dense form."""
        _require_dense(graph.num_nodes, graph.num_features)
        return super().prepare(graph, device)

    def embed(self, prepared: Prepared) -> Tensor:
        """X."""
        features = prepared.graph.features
        return features.dense() if isinstance(features, SparseMatrix) else features.clone()


def _require_dense(num_nodes: int, width: int, advice: str = "") -> None:
    """Refuse dense embeddings above 8 GiB."""
    needed = 4 * num_nodes * width
    if needed > MOST_BYTES:
        raise InputError(
            f"embeddings of {num_nodes:,} nodes, {width:,} wide, need {needed:,} bytes, above the "
            f"{MOST_BYTES:,} allowed; {advice}choose a method with a width of its own, or narrower features"
        )
