"""The Planetoid files of Cora, CiteSeer and PubMed: Python 2 pickles and a text file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spgcl.datasets.dataset import Splits
from spgcl.datasets.readers.contents import Contents, masks_of, published_splits
from spgcl.datasets.unpickle import load_pickle
from spgcl.graph import Graph

NUM_VALIDATION = 500


def read_planetoid(paths: Mapping[str, Path], *, directed: bool = False) -> Contents:
    """Read the graph, its bag-of-words features and the public split."""
    test = np.loadtxt(paths["test_index"], dtype=np.int64, ndmin=1)
    known, tested = load_pickle(paths["allx"]), load_pickle(paths["tx"])
    order = _row_of_node(known.shape[0], test)
    # One additional row of zeros, for the 15 nodes of CiteSeer without features and label.
    nothing = sparse.csr_array((1, known.shape[1]), dtype=np.float32)
    stacked = [sparse.csr_array(part, dtype=np.float32) for part in (known, tested)]
    features = sparse.vstack([*stacked, nothing], format="csr")[order]
    one_hot = np.vstack([load_pickle(paths["ally"]), load_pickle(paths["ty"])])
    one_hot = np.vstack([one_hot, np.zeros_like(one_hot[:1])])[order]
    sources, targets = _edges(load_pickle(paths["graph"]))
    return Contents(
        graph=Graph.from_edges(sources, targets, features, directed=directed),
        labels=one_hot.argmax(axis=1).astype(np.int64),
        splits=_public_split(len(load_pickle(paths["y"])), test, len(order)),
    )


def _row_of_node(num_known: int, test: NDArray[np.int64]) -> NDArray[np.int64]:
    """The index of each node's row in (known rows, test rows, one empty row)."""
    order = np.full(int(test.max()) + 1, num_known + len(test), dtype=np.int64)
    order[:num_known] = np.arange(num_known)
    order[test] = num_known + np.arange(len(test))
    return order


def _edges(neighbours: Mapping[int, list[int]]) -> tuple[NDArray[Any], NDArray[Any]]:
    counts = [len(row) for row in neighbours.values()]
    sources = np.repeat(np.fromiter(neighbours, dtype=np.int64), counts)
    targets = np.fromiter(
        (node for row in neighbours.values() for node in row), dtype=np.int64, count=sum(counts)
    )
    return sources, targets


def _public_split(num_train: int, test: NDArray[np.int64], num_nodes: int) -> Splits:
    train, validation = np.arange(num_train), num_train + np.arange(NUM_VALIDATION)
    masks = [masks_of([part], num_nodes) for part in (train, validation, test)]
    return published_splits(masks, source="public")
