"""Feature columns on comparable scales, and rows of length one."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spgcl.graph.checks import Features
from spgcl.graph.propagate import inverse

# Above this fraction of entries that are not 0, features are measurements.
DENSE_FROM = 0.5


def column_scales(features: Any) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """What is subtracted from feature columns, and what they are multiplied with.

    Columns that are mostly not 0 are measurements with units of their own: they get mean 0 and deviation 1.
    Others count or mark something: they keep their zeros and are divided by the root of their deviation, as
    rare ones tell more, but not as much as their rarity says. Constant columns become 0.
    """
    entries = features.nnz if sparse.issparse(features) else np.count_nonzero(features)
    measured = entries > DENSE_FROM * features.shape[0] * features.shape[1]
    means = np.asarray(features.mean(axis=0, dtype=np.float64)).reshape(-1)
    squares = np.asarray((features**2).mean(axis=0, dtype=np.float64)).reshape(-1)
    variances = squares - means**2
    deviations = np.sqrt(np.where(variances > 1e-10 * means**2, variances, 0))
    scales = inverse(deviations if measured else np.sqrt(deviations))
    return (means if measured else 0 * means).astype(np.float32), scales.astype(np.float32)


def unit_features(features: Any, offsets: NDArray[np.float32], scales: NDArray[np.float32]) -> Features:
    """Features with scaled columns, then rows of length 1 or 0."""
    if sparse.issparse(features) and not offsets.any():
        scaled = features @ sparse.diags_array(scales)
        lengths = np.sqrt(scaled.multiply(scaled).sum(axis=1))
        return sparse.csr_array(sparse.diags_array(inverse(lengths)) @ scaled, dtype=np.float32)
    scaled = ((features.toarray() if sparse.issparse(features) else features) - offsets) * scales
    return np.asarray(scaled * inverse(np.linalg.norm(scaled, axis=1))[:, None], dtype=np.float32)
