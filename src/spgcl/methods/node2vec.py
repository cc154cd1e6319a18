"""node2vec: walks that stay near or move away, read as sentences (Grover and Leskovec, KDD 2016)."""

from typing import Annotated, Any

from spgcl.methods.parts.skipgram import WalkMethod
from spgcl.methods.ranges import Range, Size

# The inverse, too, has to fit: walks compare biases in float32.
Bias = Annotated[float, Range(least=1e-6, most=1e6)]


class Node2Vec(WalkMethod):
    """Nodes that biased random walks visit close together get similar vectors; features are not used.

    Args:
        walks: Walks from every node (r).
        walk_length: Nodes of a walk (l).
        window: Largest distance in a walk of two nodes that attract (k).
        p: Return parameter; below 1 a walk tends to return to the node before.
        q: In-out parameter; below 1 a walk tends to move away from the node before.
    """

    def __init__(
        self, num_features: int, *, walks: Size = 10, p: Bias = 0.25, q: Bias = 0.25, **shared: Any
    ) -> None:
        super().__init__(p, q, walks=walks, **shared)
