"""Adjacency matrices in files: Matrix Market, MATLAB, SciPy."""

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import io, sparse

from spgcl.errors import InputError
from spgcl.io.draft import Draft
from spgcl.io.objects import from_adjacency
from spgcl.io.opening import opening

# Variables of a MATLAB file that are features, if they have one row per node.
_FEATURES = ("x", "features", "attributes", "attrb", "attr", "fea")


def read_adjacency(path: Path, suffix: str, *, weighted: bool) -> Draft:
    """The graph of a matrix: entry (i, j) is the edge from i to j."""
    with opening(path, "matrix"):
        matrix, features, names = _read(path, suffix)
        if not weighted:
            matrix = matrix != 0
        draft = from_adjacency(matrix)
    return replace(draft, features=features, notes=(*draft.notes, *names))


def _read(path: Path, suffix: str) -> tuple[Any, Any, list[str]]:
    if suffix == ".npz":
        return sparse.load_npz(path), None, []
    if suffix == ".mtx":
        with warnings.catch_warnings():
            # One class of sparse containers is deprecated for another.
            warnings.simplefilter("ignore", DeprecationWarning)
            return sparse.coo_array(io.mmread(path)), None, []
    return _read_matlab(path)


def _read_matlab(path: Path) -> tuple[Any, Any, list[str]]:
    """The only square sparse matrix, and features if a variable of a usual name has a row per node."""
    try:
        held = {name: value for name, value in io.loadmat(path).items() if not name.startswith("__")}
    except NotImplementedError:
        raise InputError("is of MATLAB 7.3; save it with -v7 (save('file.mat', '-v7'))") from None
    square = [
        name for name, value in held.items() if sparse.issparse(value) and value.shape[0] == value.shape[1]
    ]
    if len(square) != 1:
        found = ", ".join(square) or f"none among {', '.join(list(held)[:6])}"
        raise InputError(f"expected one square sparse matrix, the adjacency, found {found}")
    count = held[square[0]].shape[0]
    usual = (name for name in held if name.lower() in _FEATURES and np.ndim(held[name]) == 2)
    name = next((name for name in usual if held[name].shape[0] == count), None)
    notes = [f"{square[0]!r} of {path.name} read as the adjacency"]
    if name is not None:
        notes.append(f"{name!r} of {path.name} read as features")
    return held[square[0]], None if name is None else held[name], notes
