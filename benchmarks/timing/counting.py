"""Operations and bytes that one step of SP-GCL needs at least, counted from its settings and the graph.

With F features, width d, a pool of P entries over U distinct nodes, S the normalised adjacency, X the
features, and R2, R1, R0 the rows that the second layer, the first layer and the features are needed for (U,
their neighbours, and theirs; all nodes if batch norm uses all), a step forward and backward takes

    operations  first layer     4 R1 F d, or 4 (|X[R0]| + |S[R1]|) d if features are sparse
                second layer    4 |S[R2]| d + min(6 R2 d^2, 3 R2 d^2 + 4 d^3 + 6 U d^2)
                head            12 U d^2
                similarities    2 U^2 d + 2 d min(U^2, 2 P (K_pos + K_neg))
    bytes       weights         36 each (read forward, gradient written, seven arrays of AdamW), and
                                4 more each past the first layer, whose input needs no gradient
                matrices        twice 4 per entry of dense features, 8 per entry of a sparse matrix
                activations     20 d (R1 + 2 R2 + 2 U), and 20 d R0 if features are sparse: written,
                                read forward and backward, gradient written and read
                similarities    8 U^2

where |M| is the number of entries and a multiplication with its addition is two operations. The second of the
two ways for the second layer computes batch norm over R2 rows from the covariance of its inputs (half of its
entries), and their gradient by one product. Normalisations, activations and dropout are free: they can be
done while a value is in a register.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spgcl.graph import Graph
from timing.reference import RULES

# Below this fraction of non-zeros a sparse product is faster in practice too.
SPARSE_BELOW = 0.1


@dataclass(frozen=True)
class Extent:
    """How much of a graph one step touches, on average over draws.

    Attributes:
        pool: Entries of the pool (P).
        distinct: Distinct nodes in it (U).
        second_rows: Rows of the second layer (R2).
        first_rows: Rows of the first layer (R1).
        feature_rows: Rows of the features (R0).
        second_entries: Entries of S in the second layer's rows.
        first_entries: Entries of S in the first layer's rows.
        feature_entries: Non-zero features in their rows.
        sparse_features: Whether features are counted as sparse.
    """

    pool: int
    distinct: int
    second_rows: int
    first_rows: int
    feature_rows: int
    second_entries: int
    first_entries: int
    feature_entries: int
    sparse_features: bool


@dataclass(frozen=True)
class Cost:
    """What one step takes at least: operations, and bytes read or written."""

    operations: int
    bytes: int


def is_counted(settings: Mapping[str, Any]) -> bool:
    """Whether the formula covers these settings: the published rules, any sizes."""
    return all(settings[name] == value for name, value in RULES.items())


def measure_extent(graph: Graph, settings: Mapping[str, Any], *, draws: int = 3, seed: int = 0) -> Extent:
    """Draw pools as a step does and count what they need."""
    looped = (graph.adjacency + sparse.eye_array(graph.num_nodes, dtype=np.float32)).tocsr()
    stored = sparse.csr_array(graph.features)
    generator = np.random.default_rng(seed)
    found = [_extent_of_draw(looped, stored, settings, generator) for _ in range(draws)]
    means = {name: round(np.mean([getattr(one, name) for one in found])) for name in asdict(found[0])}
    return Extent(**{**means, "sparse_features": found[0].sparse_features})


def _extent_of_draw(
    looped: sparse.csr_array,
    features: sparse.csr_array,
    settings: Mapping[str, Any],
    generator: np.random.Generator,
) -> Extent:
    pool = _draw_pool(looped, settings, generator)
    distinct = np.unique(pool)
    everything = np.arange(looped.shape[0])
    whole = settings["batch_norm"] != "none" and settings["batch_norm_rows"] == "all"
    second = everything if whole else distinct
    first = everything if whole else np.unique(looped[second].indices)
    read = everything if whole else np.unique(looped[first].indices)
    return Extent(
        pool=len(pool),
        distinct=len(distinct),
        second_rows=len(second),
        first_rows=len(first),
        feature_rows=len(read),
        second_entries=_entries(looped, second),
        first_entries=_entries(looped, first),
        feature_entries=_entries(features, read),
        sparse_features=bool(features.nnz < SPARSE_BELOW * features.shape[0] * features.shape[1]),
    )


def _draw_pool(
    looped: sparse.csr_array, settings: Mapping[str, Any], generator: np.random.Generator
) -> NDArray[Any]:
    num_nodes = looped.shape[0]
    seeds = generator.choice(num_nodes, min(settings["seeds"], num_nodes), replace=False)
    reached = sparse.eye_array(num_nodes, dtype=np.float32, format="csr")[seeds]
    for _ in range(settings["hops"]):
        reached = sparse.csr_array(reached @ looped)
    pool = np.array(reached.indices)
    return generator.permutation(pool)[: settings["pool_size"] or None]


def _entries(matrix: sparse.csr_array, rows: NDArray[Any]) -> int:
    return int(np.diff(matrix.indptr)[rows].sum())


def count(extent: Extent, num_features: int, settings: Mapping[str, Any]) -> Cost:
    """Operations and bytes of one step, by the formula of this module."""
    width, pairs = settings["hidden"], settings["positives"] + settings["negatives"]
    first_weights, other_weights = num_features * width, 3 * width**2
    if extent.sparse_features:
        first = 4 * (extent.feature_entries + extent.first_entries) * width
        matrices = 16 * (extent.feature_entries + extent.first_entries)
    else:
        first = 4 * extent.first_rows * first_weights
        matrices = 8 * extent.first_rows * num_features
    squares = extent.distinct**2
    by_covariance = 3 * extent.second_rows + 4 * width + 6 * extent.distinct
    operations = (
        first
        + 4 * extent.second_entries * width
        + (min(6 * extent.second_rows, by_covariance) + 12 * extent.distinct) * width**2
        + 2 * width * (squares + min(squares, 2 * extent.pool * pairs))
    )
    rows = extent.first_rows + 2 * extent.second_rows + 2 * extent.distinct
    rows += extent.feature_rows if extent.sparse_features else 0
    weights = 4 * (9 * (first_weights + other_weights) + other_weights)
    return Cost(operations, weights + matrices + 16 * extent.second_entries + 20 * width * rows + 8 * squares)
