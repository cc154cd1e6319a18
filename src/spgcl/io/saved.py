"""Graphs saved as one file: PyTorch Geometric's `.pt` and the `.npz` of the heterophilous benchmarks."""

import pickle
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from spgcl.errors import InputError
from spgcl.graph.checks import checked_end_points, checked_ids, frozen
from spgcl.io.draft import Draft
from spgcl.io.objects import comes_from, edge_ends, from_attributes, from_pyg
from spgcl.io.opening import opening

_OPTIONAL = ("node_ids", "edge_weights", "feature_names")


def read_saved_data(path: Path, *, weighted: bool = True) -> Draft:
    """A PyG `Data` (or a dictionary of its tensors) written by `torch.save`; no code in it is run."""
    loaded = load_saved(path)
    with opening(path, "PyTorch Geometric Data"):
        if isinstance(loaded, Mapping):
            return from_attributes(loaded, weighted=weighted)
        if comes_from(loaded, "torch_geometric"):
            return from_pyg(loaded, weighted=weighted)
        raise InputError(f"holds a {type(loaded).__name__}, not a graph; save a PyTorch Geometric Data in it")


def load_saved(path: Path) -> Any:
    """The object that `torch.save` wrote; from a saved data set of PyG, its `Data`."""
    with opening(path, "file of torch.save"):
        loaded = _load(path)
    # Data sets of PyG store their single graph as (data, None, class).
    return loaded[0] if isinstance(loaded, tuple) and len(loaded) in (2, 3) and loaded[1] is None else loaded


def _load(path: Path) -> Any:
    import torch

    # The import alone warns about torch.jit.script, which does not concern the user's file.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from torch_geometric.data import Data, HeteroData
        from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
        from torch_geometric.data.storage import BaseStorage, EdgeStorage, GlobalStorage, NodeStorage

    # HeteroData is admitted so that its error can name it.
    storage = [BaseStorage, GlobalStorage, NodeStorage, EdgeStorage]
    admitted = [Data, HeteroData, DataEdgeAttr, DataTensorAttr, *storage]
    try:
        with torch.serialization.safe_globals(admitted), warnings.catch_warnings():
            # torch also warns about a file that it did not write; the error below is one line.
            warnings.simplefilter("ignore")
            return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        found = re.search(r"GLOBAL (\S+)", str(error))
        if not found:
            raise
        raise InputError(
            f"refused, it would load {found.group(1)}; save a PyTorch Geometric Data that holds only tensors"
        ) from None


def read_archive(path: Path) -> Draft:
    """An `.npz` with `node_features` (N x F) and `edges` (E x 2); labels and masks are ignored.

    Optional: `node_ids`, `edge_weights`, `feature_names`; sparse features as `node_features_data`,
    `_indices`, `_indptr` and `_shape`.
    """
    with opening(path, "NumPy archive"):
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            is_sparse = "node_features_data" in archive.files
            if "edges" not in archive.files or not {"node_features", "node_features_data"} & {*archive.files}:
                found = ", ".join(archive.files[:6]) or "nothing"
                raise InputError(f"a graph in .npz needs 'node_features' and 'edges', found {found}")
            features = _sparse_features(archive) if is_sparse else frozen(archive["node_features"])
            edges = archive["edges"]
            given = {name: archive[name] for name in _OPTIONAL if name in archive.files}
        if features.ndim != 2:
            raise InputError(f"'node_features' needs two dimensions, not shape {features.shape}")
        count = features.shape[0]
        sources, targets = edge_ends(edges, "'edges'", axis=1)
        sources, targets = checked_end_points(sources, targets, count)
        ids = checked_ids(given["node_ids"], count) if "node_ids" in given else np.arange(count)
    names = tuple(given["feature_names"].tolist()) if "feature_names" in given else ()
    return Draft(
        sources,
        targets,
        ids,
        features=features,
        feature_names=names,
        weights=given.get("edge_weights"),
    )


def _sparse_features(archive: Any) -> sparse.csr_array:
    data, indices, indptr, shape = (
        archive[f"node_features_{name}"] for name in ("data", "indices", "indptr", "shape")
    )
    return sparse.csr_array((data, indices, indptr), shape=tuple(shape.tolist()))
