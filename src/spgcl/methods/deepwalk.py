"""DeepWalk: vectors of nodes from random walks read as sentences (Perozzi et al., KDD 2014)."""

from spgcl.methods.parts.skipgram import SkipGram, WalkLength, WalkMethod
from spgcl.methods.ranges import Count, Positive, Size, Width


class DeepWalk(WalkMethod):
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
        skip_gram = SkipGram(
            hidden=hidden,
            walks=walks,
            walk_length=walk_length,
            window=window,
            negatives=negatives,
            steps=steps,
        )
        super().__init__(skip_gram, learning_rate=learning_rate, weight_decay=weight_decay)
