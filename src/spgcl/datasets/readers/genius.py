"""Genius: a MATLAB file with edges, features and labels, and LINKX's splits."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from spgcl.datasets.readers.contents import Contents, compact, read_index_splits
from spgcl.graph import Graph
from spgcl.io.opening import opening


def read_genius(paths: Mapping[str, Path], *, directed: bool = False) -> Contents:
    """Read `edge_index` (2 x edges), `node_feat` and `label`."""
    from scipy.io import loadmat

    path = paths["matrices"]
    with opening(path, "MATLAB file of genius"):
        matrices = loadmat(path, variable_names=["edge_index", "node_feat", "label"])
        edges, features, labels = (matrices[name] for name in ("edge_index", "node_feat", "label"))
    sources, targets = edges.astype(np.int64)
    return Contents(
        graph=Graph.from_edges(sources, targets, compact(features), directed=directed),
        labels=labels.ravel().astype(np.int64),
        splits=read_index_splits(paths["splits"], labels.size),
    )
