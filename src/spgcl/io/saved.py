"""Graphs saved as one file: PyTorch Geometric's `.pt` and the `.npz` of the heterophilous benchmarks."""

import pickle
import re
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from spgcl.errors import InputError
from spgcl.graph.checks import frozen
from spgcl.io.draft import Draft
from spgcl.io.objects import comes_from, from_attributes, from_pyg
from spgcl.io.opening import opening, require_file


def read_saved_data(path: Path, *, weighted: bool = True) -> Draft:
    """A PyG `Data` (or a dictionary of its tensors) written by `torch.save`; no code in it is run."""
    loaded = load_saved(path)
    try:
        with opening(path, "PyTorch Geometric Data"):
            draft = _draft(loaded, weighted=weighted)
    except InputError as error:
        raise InputError(str(error) if str(path) in str(error) else f"{path}: {error}") from None
    return replace(draft, origin=str(path))


def load_saved(path: Path) -> Any:
    """The object that `torch.save` wrote: the `Data` itself where a data set of PyG was saved."""
    require_file(path)
    with opening(path, "file of torch.save"):
        loaded = _load(path)
    # Data sets of PyG store their single graph as (data, None, class).
    return loaded[0] if isinstance(loaded, tuple) and len(loaded) in (2, 3) and loaded[1] is None else loaded


def _draft(loaded: Any, *, weighted: bool) -> Draft:
    if isinstance(loaded, Mapping):
        return from_attributes(loaded, weighted=weighted)
    if comes_from(loaded, "torch_geometric"):
        return from_pyg(loaded, weighted=weighted)
    raise InputError(f"holds a {type(loaded).__name__}, not a graph; save a PyTorch Geometric Data in it")


def _load(path: Path) -> Any:
    import torch

    # Its import alone warns of torch.jit.script, which says nothing about the user's file.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from torch_geometric.data import Data, HeteroData
        from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
        from torch_geometric.data.storage import BaseStorage, EdgeStorage, GlobalStorage, NodeStorage

    # HeteroData is let in only to be refused by its name.
    storage = [
        Data,
        HeteroData,
        DataEdgeAttr,
        DataTensorAttr,
        BaseStorage,
        GlobalStorage,
        NodeStorage,
        EdgeStorage,
    ]
    try:
        with torch.serialization.safe_globals(storage), warnings.catch_warnings():
            # What torch says of a file that it did not write, the error below says in one line.
            warnings.simplefilter("ignore")
            return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        found = re.search(r"GLOBAL (\S+)", str(error))
        if not found:
            raise
        way_out = "save a PyTorch Geometric Data that holds only tensors"
        raise InputError(f"{path}: refused, it asks for {found.group(1)}; {way_out}") from None


def read_heterophilous(path: Path) -> Draft:
    """An `.npz` with `node_features` (N x F) and `edges` (E x 2); labels and masks are not looked at."""
    require_file(path)
    with (
        opening(path, "NumPy archive"),
        path.open("rb") as file,
        np.load(file, allow_pickle=False) as archive,
    ):
        if not {"node_features", "edges"} <= set(archive.files):
            found = ", ".join(archive.files[:6]) or "nothing"
            raise InputError(f"{path}: a graph in .npz needs 'node_features' and 'edges', found {found}")
        features, edges = frozen(archive["node_features"]), archive["edges"]
    if edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind not in "iu":
        raise InputError(
            f"{path}: 'edges' needs integers of shape (E, 2), not {edges.dtype} of {edges.shape}"
        )
    if features.ndim != 2:
        raise InputError(f"{path}: 'node_features' needs two dimensions, not shape {features.shape}")
    num_nodes = len(features)
    beyond = np.flatnonzero(((edges < 0) | (edges >= num_nodes)).any(axis=1))
    if len(beyond):
        raise InputError(
            f"{path}: edges[{beyond[0]}] is {edges[beyond[0]].tolist()}, but there are {num_nodes} nodes "
            f"(0 to {num_nodes - 1})"
        )
    sources, targets = edges.astype(np.int64).T
    return Draft(sources, targets, np.arange(num_nodes), features=features, origin=str(path))
