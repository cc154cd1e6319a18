"""The two .npz layouts: gnn-benchmark (Amazon, Coauthor) and the heterophilous graphs."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from scipy import sparse

from spgcl.datasets.readers.contents import Contents, compact, published_splits, read_arrays
from spgcl.graph import Graph


def read_gnn_benchmark(paths: Mapping[str, Path], *, directed: bool = False) -> Contents:
    """Read adjacency and attributes stored as CSR parts. The pickled `class_names` are never opened."""
    parts = [f"{matrix}_{part}" for matrix in ("adj", "attr") for part in ("indices", "indptr", "shape")]
    arrays = read_arrays(paths["archive"], [*parts, "attr_data", "labels"])
    indptr = arrays["adj_indptr"]
    sources = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    # Word counts become 0/1, as PyTorch Geometric makes them and as the paper therefore used them.
    present = (arrays["attr_data"] > 0).astype(np.float32)
    features = sparse.csr_array(
        (present, arrays["attr_indices"], arrays["attr_indptr"]), shape=tuple(arrays["attr_shape"].tolist())
    )
    features.eliminate_zeros()
    return Contents(
        graph=Graph.from_edges(sources, arrays["adj_indices"], features, directed=directed),
        labels=arrays["labels"].astype(np.int64),
        splits=None,
    )


def read_heterophilous(paths: Mapping[str, Path], *, directed: bool = False) -> Contents:
    """Read features, labels, an edge list and the masks of ten splits."""
    masks = ("train_masks", "val_masks", "test_masks")
    arrays = read_arrays(paths["archive"], ["node_features", "node_labels", "edges", *masks])
    sources, targets = arrays["edges"].T
    return Contents(
        graph=Graph.from_edges(sources, targets, compact(arrays["node_features"]), directed=directed),
        labels=arrays["node_labels"].astype(np.int64),
        splits=published_splits([arrays[mask] for mask in masks]),
    )
