"""node2vec: walks that stay near or move away, read as sentences (Grover and Leskovec, KDD 2016)."""

from typing import Annotated

from spgcl.methods.parts.skipgram import SkipGram, WalkLength, WalkMethod
from spgcl.methods.ranges import Count, Positive, Range, Size, Width

# Also for the inverse: walks compare biases in float32.
Bias = Annotated[float, Range(least=1e-6, most=1e6)]


class Node2Vec(WalkMethod):
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
        skip_gram = SkipGram(
            hidden=hidden,
            walks=walks,
            walk_length=walk_length,
            window=window,
            negatives=negatives,
            steps=steps,
        )
        super().__init__(skip_gram, learning_rate=learning_rate, weight_decay=weight_decay, p=p, q=q)
