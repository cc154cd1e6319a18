"""DeepWalk: vectors of nodes from random walks read as sentences (Perozzi et al., KDD 2014)."""

from typing import Any

from spgcl.methods.parts.skipgram import WalkMethod
from spgcl.methods.ranges import Size


class DeepWalk(WalkMethod):
    """Nodes that random walks visit close together get similar vectors; features are not used.

    Args:
        walks: Walks from every node (gamma).
        walk_length: Nodes of a walk (t).
        window: Largest distance in a walk of two nodes that attract (w).
    """

    def __init__(self, num_features: int, *, walks: Size = 80, **shared: Any) -> None:
        super().__init__(walks=walks, **shared)
