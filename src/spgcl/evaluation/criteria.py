"""What vectors can be compared by without labels: edges and features that training did not see."""

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from spgcl.graph import Graph
from spgcl.methods.parts.halves import centred_similarities

# Rows that are compared at most.
COMPARED = 2000


def without_columns(graph: Graph, hidden: NDArray[np.bool_]) -> Graph:
    """A graph with zeros in some feature columns."""
    kept = sparse.diags_array((~hidden).astype(np.float32))
    return graph.with_features(graph.features @ kept, graph.feature_names)


def columns_of(graph: Graph, chosen: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Some feature columns, dense."""
    columns: Any = graph.features[:, np.flatnonzero(chosen)]
    return np.asarray(columns.toarray() if sparse.issparse(columns) else columns, dtype=np.float32)


def unit_rows(rows: NDArray[np.float32]) -> NDArray[np.float64]:
    """Evenly spread rows, at most `COMPARED`, of length 1."""
    kept = rows[np.linspace(0, len(rows) - 1, min(COMPARED, len(rows))).astype(int)].astype(np.float64)
    return np.asarray(kept / np.maximum(np.linalg.norm(kept, axis=1, keepdims=True), 1e-12))


def agreement(first: NDArray[np.float32], second: NDArray[np.float32]) -> float:
    """Unbiased linear CKA of rows of length 1: 1 if two tables of vectors of the same nodes say the same."""
    one, other = (centred_similarities(torch.as_tensor(unit_rows(rows))) for rows in (first, second))
    norm = math.sqrt(one.square().sum() * other.square().sum())
    return float((one * other).sum()) / max(norm, 1e-12)
