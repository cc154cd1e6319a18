"""What a score is a score of."""

import hashlib

import numpy as np
from numpy.typing import NDArray

from spgcl.datasets.dataset import Splits
from spgcl.graph import Graph


def task_digest(graph: Graph, labels: NDArray[np.int64], splits: Splits) -> str:
    """Tells a graph with its labels and splits apart from others, so that a stored score is of the same."""
    state = hashlib.sha256(graph.digest.encode() + labels.tobytes())
    for part in ("train", "validation", "test"):
        state.update(getattr(splits, part).tobytes())
    return state.hexdigest()
