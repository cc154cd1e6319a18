"""Node features given beside a graph: tables with ids, or matrices whose rows are the nodes in order."""

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spgcl.errors import InputError
from spgcl.graph.checks import Features, checked_features, frozen
from spgcl.io.opening import opening, require_file, suffix_of

TABLES = (".csv", ".tsv", ".txt", ".parquet")
MATRICES = (".npy", ".npz")


@dataclass(frozen=True, eq=False)
class NodeFeatures:
    """Feature rows with the ids they belong to; without ids, rows are nodes 0 ... N - 1.

    Attributes:
        origin: The file, or "the features" for an object in memory.
        names: Names of the columns, where there are any.
    """

    matrix: Features
    ids: NDArray[Any] | None
    origin: str
    notes: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


def read_features(source: Any, *, id_column: str | None = None) -> NodeFeatures:
    """Features from a path, an array, a SciPy matrix or a tensor."""
    if not isinstance(source, str | PathLike):
        from spgcl.io.objects import as_matrix

        return NodeFeatures(checked_features(as_matrix(source)), None, "the features")
    path = Path(source)
    require_file(path)
    if suffix_of(path) in TABLES:
        return _read_feature_table(path, id_column)
    if suffix_of(path) in MATRICES:
        return NodeFeatures(_prefixed(path, read_matrix(path)), None, str(path))
    raise InputError(f"{path}: cannot read features from {path.suffix!r}; use {', '.join(TABLES + MATRICES)}")


def _prefixed(path: Path, matrix: Any) -> Features:
    try:
        return checked_features(matrix)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def read_matrix(path: Path) -> Any:
    """The one array of an `.npy` or `.npz`, or the SciPy matrix of an `.npz`; never a pickle."""
    with opening(path, "NumPy file"):
        if suffix_of(path) == ".npy":
            return read_npy(path)
        # An open file, as NumPy would leave one of its own open when the archive is damaged.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            if {"format", "shape", "data"} <= set(archive.files):
                return sparse.load_npz(path)
            if len(archive.files) == 1:
                return frozen(archive[archive.files[0]])
            names = ", ".join(archive.files[:6]) or "nothing"
        raise InputError(f"{path}: holds {names}; save one array, or a matrix with scipy.sparse.save_npz")


def read_npy(path: Path) -> NDArray[Any]:
    """The array of an `.npy`; a pickle in it is refused."""
    with opening(path, "NumPy file"), path.open("rb") as file:
        return frozen(np.lib.format.read_array(file, allow_pickle=False))


def _read_feature_table(path: Path, id_column: str | None) -> NodeFeatures:
    from spgcl.io.tables import need_header, read_ids, read_table

    table = read_table(path, named_columns=need_header(id_column))
    key = table.find(id_column) if id_column is not None else 0
    others = [place for place in range(len(table.columns)) if place != key]
    if not others:
        raise InputError(
            f"{path}: no feature columns beside {table.names[key]!r}; add some or use --structural"
        )
    ids = read_ids(table, key)
    _refuse_repeated(table, ids)
    matrix = _prefixed(path, _stack(table, others))
    # One column of vectors has a name for all of them and none for each.
    named = table.headed and matrix.shape[1] == len(others)
    names = tuple(table.names[place] for place in others) if named else ()
    return NodeFeatures(matrix, ids, str(path), table.notes, names)


def _stack(table: Any, columns: list[int]) -> NDArray[np.float32]:
    from spgcl.io.tables import read_numbers, read_vectors

    if len(columns) == 1 and (vectors := read_vectors(table, columns[0])) is not None:
        return frozen(vectors)
    matrix = np.empty((len(table.columns[0]), len(columns)), dtype=np.float32)
    for place, column in enumerate(columns):
        matrix[:, place] = read_numbers(table, column)
    return frozen(matrix)


def _refuse_repeated(table: Any, ids: NDArray[Any]) -> None:
    listed = ids.tolist()
    if len(set(listed)) == len(listed):
        return
    seen: dict[Any, int] = {}
    for index, node in enumerate(listed):
        if node in seen:
            raise InputError(
                f"{table.path}, row {table.row(index)}: node {node!r} again, first in row "
                f"{table.row(seen[node])}; keep one row a node (or is the id another column? --id)"
            )
        seen[node] = index
