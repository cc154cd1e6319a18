"""DeepWalk: vectors of nodes from random walks read as sentences (Perozzi et al., KDD 2014)."""

from spgcl.methods.parts.skipgram import WalkLength, WalkMethod
from spgcl.methods.ranges import Count, Positive, Size, Width


class DeepWalk(WalkMethod):
    """Nodes that random walks visit close together get similar vectors; features are not used.

    Args:
        walks: Walks from every node (gamma).
        walk_length: Nodes of a walk (t).
        window: Largest distance in a walk of two nodes that attract (w).
    """

    def __init__(
        self,
        num_features: int,
        *,
        hidden: Width = 256,
        walks: Size = 80,
        walk_length: WalkLength = 80,
        window: Size = 10,
        negatives: Size = 1,
        steps: Count = 1000,
        learning_rate: Positive = 0.01,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(hidden, walks, walk_length, window, negatives, steps, learning_rate, weight_decay)
