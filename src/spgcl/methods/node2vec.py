"""node2vec: walks that stay near or move away, read as sentences (Grover and Leskovec, KDD 2016)."""

from typing import Annotated, Any

import torch
from torch import Tensor

from spgcl.graph import Graph
from spgcl.methods.method import Method, Prepared
from spgcl.methods.parts.skipgram import SkipGram, WalkLength
from spgcl.methods.parts.walks import WalkGraph, random_walks
from spgcl.methods.ranges import Count, Positive, Range, Size, Width

# Also for the inverse: walks compare biases in float32.
Bias = Annotated[float, Range(least=1e-6, most=1e6)]


class Node2Vec(Method):
    """Nodes that biased random walks meet near each other get similar vectors; features are not looked at.

    Args:
        num_features: Width of the graph's features; not looked at.
        hidden: Width of the embedding (d).
        walks: Walks from every node (r).
        walk_length: Nodes of a walk (l).
        window: Largest distance in a walk of two nodes that attract (k).
        p: Return parameter; below 1 a walk tends to go back to where it was.
        q: In-out parameter; below 1 a walk tends to move away from where it was.
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
        walks: Size = 10,
        walk_length: WalkLength = 80,
        window: Size = 10,
        p: Bias = 1.0,
        q: Bias = 1.0,
        negatives: Size = 5,
        steps: Count = 1000,
        learning_rate: Positive = 0.005,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__()
        self.p, self.q = p, q
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
        """Skip-gram over this step's walks (Eq. 2 with negative sampling; Algorithm 1)."""
        return self.skip_gram.loss(prepared, step, generator, self._walk)

    def learning_rate_at(self, step: int) -> float:
        """Falls on a line, to 0 after the last step, as in word2vec."""
        return self.learning_rate * (1 - step / self.steps)

    def embed(self, prepared: Prepared) -> Tensor:
        """The vectors of the nodes as centres (f)."""
        return self.skip_gram.vectors()

    def _walk(self, graph: WalkGraph, starts: Tensor, generator: torch.Generator) -> Tensor:
        return random_walks(
            graph,
            starts,
            self.skip_gram.walk_length,
            generator,
            return_parameter=self.p,
            in_out_parameter=self.q,
        )
