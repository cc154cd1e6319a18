"""The result of every reader, and conversions that several formats share."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spgcl.datasets.dataset import Splits
from spgcl.datasets.unpickle import load_pickled_array
from spgcl.graph import Graph
from spgcl.graph.checks import Features
from spgcl.io.opening import opening


@dataclass(frozen=True, eq=False)
class Contents:
    """The content of a data set's files; `splits` is None if none are published."""

    graph: Graph
    labels: NDArray[np.int64]
    splits: Splits | None


def compact(features: NDArray[Any]) -> Features:
    """Dense features as CSR if less than a third is non-zero: then it is smaller and propagates faster."""
    present = features != 0
    if 3 * np.count_nonzero(present) >= features.size:
        return np.ascontiguousarray(features, dtype=np.float32)
    positions = np.flatnonzero(present)
    height, width = features.shape
    index = sparse.get_index_dtype(maxval=max(len(positions), width))
    columns = (positions % width).astype(index)
    pointers = np.searchsorted(positions, np.arange(height + 1) * width).astype(index)
    values = features.reshape(-1)[positions].astype(np.float32, copy=False)
    return sparse.csr_array((values, columns, pointers), shape=features.shape)


def indicators(rows: Sequence[NDArray[np.int64]], width: int) -> sparse.csr_array:
    """0/1 features from the column numbers set in each row; a number listed twice counts once."""
    columns = np.concatenate(rows)
    pointers = np.cumsum([0, *map(len, rows)])
    matrix = sparse.csr_array(
        (np.ones(len(columns), np.float32), columns, pointers), shape=(len(rows), width)
    )
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return matrix


def read_arrays(path: Path, names: Iterable[str]) -> dict[str, NDArray[Any]]:
    """Arrays of an .npz by name; members that are not named are never opened, pickled ones are refused."""
    with opening(path, ".npz of arrays"), path.open("rb") as file, np.load(file, allow_pickle=False) as held:
        return {name: held[name] for name in names}


def published_splits(parts: Sequence[NDArray[Any]], source: str = "published") -> Splits:
    """Splits from the train, validation and test masks, each of shape (splits, nodes)."""
    train, validation, test = (np.asarray(part, dtype=np.bool_) for part in parts)
    return Splits(train, validation, test, source)


def masks_of(indices: Iterable[Any], num_nodes: int) -> NDArray[np.bool_]:
    """Lists of node numbers as boolean rows."""
    rows = [np.asarray(row, dtype=np.int64) for row in indices]
    masks = np.zeros((len(rows), num_nodes), dtype=np.bool_)
    for mask, row in zip(masks, rows, strict=True):
        mask[row] = True
    return masks


def read_index_splits(path: Path, num_nodes: int) -> Splits:
    """Splits stored as a pickled .npy of records with node numbers under `train`, `valid` and `test`."""
    records: list[Mapping[str, Any]] = list(load_pickled_array(path))
    with opening(path, f"file of splits over {num_nodes} nodes"):
        return published_splits(
            [masks_of((record[part] for record in records), num_nodes) for part in ("train", "valid", "test")]
        )
