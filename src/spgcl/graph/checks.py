"""What a graph is made of, checked at the border: features, edges, weights, ids, seeds."""

import operator
from collections import Counter
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spgcl.errors import InputError

Features: TypeAlias = NDArray[np.float32] | sparse.csr_array


def checked_features(features: Any) -> Features:
    """Features as float32, dense or CSR; a value that is not finite is an error with its row and column.

    A caller's writable arrays are copied, so that neither changes the other's; read-only ones are shared.
    """
    matrix = _checked_sparse(features) if sparse.issparse(features) else _checked_dense(features)
    if not matrix.shape[0]:
        raise InputError("the graph has no nodes")
    if not matrix.shape[1]:
        raise InputError(
            "the features have no columns; compute structural ones (--structural degree|spectral)"
        )
    return matrix


def _checked_sparse(features: Any) -> sparse.csr_array:
    _require_numbers_in_two_dimensions(features)
    try:
        with np.errstate(over="ignore"):
            matrix = sparse.csr_array(features, dtype=np.float32)
        matrix.check_format(full_check=True)
    except ValueError as error:
        raise InputError(f"features are not a valid sparse matrix: {error}") from None
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    finite = np.isfinite(matrix.data)
    if not finite.all():
        entry = int(np.argmin(finite))
        row = int(np.searchsorted(matrix.indptr, entry, side="right")) - 1
        raise _not_finite(matrix.data[entry], row, int(matrix.indices[entry]))
    if features.format != "csr":
        return matrix
    parts = [(getattr(matrix, name), getattr(features, name)) for name in ("data", "indices", "indptr")]
    return matrix.copy() if any(_shared(mine, theirs) for mine, theirs in parts) else matrix


def _checked_dense(features: Any) -> NDArray[np.float32]:
    try:
        given = np.asarray(features)
        _require_numbers_in_two_dimensions(given, objects=True)
        with np.errstate(over="ignore"):
            matrix = np.ascontiguousarray(given, dtype=np.float32)
    except InputError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"features must be a numeric matrix: {error}") from None
    # A finite sum means finite entries; a sum that is not finite may be an overflow, so entries are checked.
    with np.errstate(invalid="ignore"):
        total = matrix.sum(dtype=np.float64)
    if not np.isfinite(total) and not np.isfinite(matrix).all():
        row, column = np.argwhere(~np.isfinite(matrix))[0].tolist()
        raise _not_finite(matrix[row, column], row, column)
    return matrix.copy() if _shared(matrix, given) else matrix


def _require_numbers_in_two_dimensions(features: Any, *, objects: bool = False) -> None:
    if features.dtype.kind not in ("biufO" if objects else "biuf"):
        raise InputError(f"features must be numbers, not {features.dtype}")
    if features.ndim != 2:
        raise InputError(f"features need two dimensions (nodes x columns), not shape {features.shape}")


def _shared(mine: NDArray[Any], theirs: NDArray[Any]) -> bool:
    # A graph freezes its arrays: the owner of a writable one would be surprised.
    return bool(theirs.flags.writeable and np.may_share_memory(mine, theirs))


def _not_finite(value: Any, row: int, column: int) -> InputError:
    return InputError(f"feature row {row}, column {column} is {value}; features must be finite numbers")


def checked_end_points(
    sources: NDArray[Any], targets: NDArray[Any], num_nodes: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Edge end points as integer arrays within 0 ... num_nodes - 1."""
    try:
        sources, targets = np.asarray(sources), np.asarray(targets)
    except ValueError as error:
        raise InputError(f"edges need integer end points in one dimension: {error}") from None
    for ends in (sources, targets):
        if ends.ndim != 1 or (ends.dtype.kind not in "iu" and len(ends)):
            raise InputError(f"edges need integer end points in one dimension, not {ends.dtype} {ends.shape}")
    if len(sources) != len(targets):
        raise InputError(f"edges have {len(sources)} sources but {len(targets)} targets")
    if len(sources):
        lowest, highest = min(sources.min(), targets.min()), max(sources.max(), targets.max())
        if lowest < 0 or highest >= num_nodes:
            node = lowest if lowest < 0 else highest
            known = f"{num_nodes} nodes (0 to {num_nodes - 1})"
            raise InputError(f"edges refer to node {node}, but the graph has {known}")
    return sources.astype(np.int64, copy=False), targets.astype(np.int64, copy=False)


def checked_weights(weights: NDArray[Any], num_edges: int) -> NDArray[np.float32]:
    """Edge weights as positive, finite float32."""
    try:
        given = np.asarray(weights)
        with np.errstate(over="ignore"):
            weights = np.asarray(given.real, dtype=np.float32)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"edge weights must be numbers: {error}") from None
    if given.dtype.kind == "c":
        raise InputError("edge weights must be real numbers, not complex ones")
    if weights.shape != (num_edges,):
        raise InputError(f"{num_edges} edges but weights of shape {weights.shape}")
    valid = np.isfinite(weights) & (weights > 0)
    if not valid.all():
        edge = int(np.argmin(valid))
        raise InputError(
            f"edge {edge} has weight {weights[edge]}; weights must be positive: drop the edge or rescale"
        )
    return weights


def checked_ids(node_ids: NDArray[Any], num_nodes: int) -> NDArray[Any]:
    """Node ids as int64 or str objects, one per node, all different."""
    try:
        ids = np.asarray(node_ids)
    except ValueError as error:
        raise InputError(f"node ids must be one integer or text per node: {error}") from None
    if ids.shape != (num_nodes,):
        raise InputError(f"{num_nodes} nodes but node ids of shape {ids.shape}")
    # Unsigned ids above the int64 range would wrap around: they are kept as text.
    if ids.dtype.kind == "i" or (ids.dtype.kind == "u" and (not num_nodes or ids.max() < 2**63)):
        ids = ids.astype(np.int64)
    else:
        ids = np.array([str(node) for node in ids.tolist()], dtype=object)
    listed = ids.tolist()
    if len(set(listed)) < num_nodes:
        repeated, count = Counter(listed).most_common(1)[0]
        raise InputError(f"node id {repeated!r} appears {count} times; ids must be unique")
    return ids


def checked_seed(seed: Any) -> int:
    """The seed as a whole number from 0 to 2^63 - 1, which both torch and NumPy accept.

    >>> checked_seed(7)
    7
    """
    try:
        number = operator.index(seed)
    except TypeError:
        number = -1
    if isinstance(seed, bool) or not 0 <= number < 2**63:
        raise InputError(f"seed is {seed!r}; it must be a whole number, 0 or more and below 2^63")
    return number


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """The same array made read-only: a Graph keeps it without a copy, so nobody else may hold it."""
    array.setflags(write=False)
    return array
