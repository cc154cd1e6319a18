"""The task that a score belongs to."""

import hashlib

import numpy as np
from numpy.typing import NDArray

from spgcl.datasets.dataset import Splits
from spgcl.graph import Graph


def task_digest(graph: Graph, labels: NDArray[np.int64], splits: Splits) -> str:
    """A digest of a graph with its labels and splits, so that only scores of the same task are compared."""
    state = hashlib.sha256(graph.digest.encode() + labels.tobytes())
    for part in ("train", "validation", "test"):
        state.update(getattr(splits, part).tobytes())
    return state.hexdigest()
