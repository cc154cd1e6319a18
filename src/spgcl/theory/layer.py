"""The layer that the theorems are about, Z = sigma(D^-1 A X W), with random weights."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spgcl.errors import InputError
from spgcl.graph import Graph
from spgcl.graph.checks import checked_seed

# Assumption 2 for ReLU: sigma(s q) = s^TAU sigma(q) for s > 0, and |sigma(q)| <= SLOPE |q|.
TAU = 1
SLOPE = 1.0


@dataclass(frozen=True, eq=False)
class Layer:
    """One layer of mean aggregation and ReLU, as in Theorem 1.

    Attributes:
        adjacency: A with self-loops, entries 0 and 1.
        projected: X W, shape (nodes, width).
        weight_norms: Length of every column of W, shape (width,).
        radius: R, the largest length of a feature vector.
    """

    adjacency: sparse.csr_array
    projected: NDArray[np.float64]
    weight_norms: NDArray[np.float64]
    radius: float

    @property
    def degrees(self) -> NDArray[np.int64]:
        """D_ii: neighbours and the node itself."""
        return np.asarray(np.diff(self.adjacency.indptr), dtype=np.int64)

    @cached_property
    def outputs(self) -> NDArray[np.float64]:
        """Z, shape (nodes, width)."""
        return np.asarray(np.maximum(self.adjacency @ self.projected / self.degrees[:, None], 0))


def random_layer(graph: Graph, width: int, seed: int = 0) -> Layer:
    """A layer whose weights are random columns of length one."""
    if graph.weights is not None:
        raise InputError("the theorems are about graphs without edge weights; --weight none leaves them out")
    features: Any = graph.features
    weights = np.random.default_rng(checked_seed(seed)).standard_normal((graph.num_features, width))
    weights /= np.linalg.norm(weights, axis=0)
    loops = sparse.eye_array(graph.num_nodes, dtype=np.float64)
    squares = features.multiply(features) if sparse.issparse(features) else np.square(features)
    return Layer(
        adjacency=(graph.adjacency.astype(np.float64) + loops).tocsr(),
        projected=np.asarray(features @ weights, dtype=np.float64),
        weight_norms=np.linalg.norm(weights, axis=0),
        radius=float(np.sqrt(np.asarray(squares.sum(axis=1, dtype=np.float64)).max())),
    )
