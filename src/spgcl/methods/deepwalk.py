"""DeepWalk: vectors of nodes from random walks read as sentences (Perozzi et al., KDD 2014)."""

from typing import Any

import torch
from torch import Tensor

from spgcl.graph import Graph
from spgcl.methods.method import Method, Prepared
from spgcl.methods.parts.skipgram import SkipGram, WalkLength
from spgcl.methods.parts.walks import WalkGraph, random_walks
from spgcl.methods.ranges import Count, Positive, Size, Width


class DeepWalk(Method):
    """Nodes that random walks meet near each other get similar vectors; features are not looked at.

    Args:
        num_features: Width of the graph's features; not looked at.
        hidden: Width of the embedding (d).
        walks: Walks from every node (gamma).
        walk_length: Nodes of a walk (t).
        window: Largest distance in a walk of two nodes that attract (w).
        negatives: Noise nodes a pair.
        steps: Updates that the walks are dealt out to.
        learning_rate: Of Adam; falls on a line to 0.
        weight_decay: Of AdamW.
    """

    inductive = False
    reads_features = False

    def __init__(
        self,
        num_features: int,
        *,
        hidden: Width = 128,
        walks: Size = 80,
        walk_length: WalkLength = 40,
        window: Size = 10,
        negatives: Size = 5,
        steps: Count = 2000,
        learning_rate: Positive = 0.025,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__()
        self.skip_gram = SkipGram(
            hidden=hidden,
            walks=walks,
            walk_length=walk_length,
            window=window,
            negatives=negatives,
            steps=steps,
        )
        self.steps, self.learning_rate, self.weight_decay = steps, learning_rate, weight_decay

    def allocate(self, num_nodes: int) -> None:
        """Two vectors a node."""
        self.skip_gram.allocate(num_nodes)

    def prepare(self, graph: Graph, device: torch.device, supervision: Any = None) -> Prepared:
        """Copy the edges and sum up the noise distribution."""
        return self.skip_gram.prepare(graph, device)

    def loss(self, prepared: Prepared, step: int, generator: torch.Generator) -> Tensor:
        """Skip-gram over this step's walks (Algorithms 1 and 2)."""
        return self.skip_gram.loss(prepared, step, generator, self._walk)

    def learning_rate_at(self, step: int) -> float:
        """Falls on a line, to 0 after the last step, as in word2vec."""
        return self.learning_rate * (1 - step / self.steps)

    def embed(self, prepared: Prepared) -> Tensor:
        """The vectors of the nodes as centres (Phi)."""
        return self.skip_gram.vectors()

    def _walk(self, graph: WalkGraph, starts: Tensor, generator: torch.Generator) -> Tensor:
        return random_walks(graph, starts, self.skip_gram.walk_length, generator)
