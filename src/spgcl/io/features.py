"""Node features given apart from a graph: tables with ids, or matrices whose rows are the nodes in order."""

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spgcl.errors import InputError
from spgcl.graph.checks import Features, checked_features, frozen
from spgcl.io.objects import as_matrix
from spgcl.io.opening import naming, opening, suffix_of

if TYPE_CHECKING:
    from spgcl.io.tables import Table

TABLES = (".csv", ".tsv", ".txt", ".parquet")
MATRICES = (".npy", ".npz")


@dataclass(frozen=True, eq=False)
class NodeFeatures:
    """Validated feature rows with the ids they belong to; without ids, rows are nodes 0 ... N - 1.

    Attributes:
        origin: The file, or "the features" for an object in memory.
        names: Names of the columns, if they have any.
    """

    matrix: Features
    ids: NDArray[Any] | None = None
    origin: str = "the features"
    notes: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


def read_features(source: Any, *, id_column: str | None = None) -> NodeFeatures:
    """Features from a path, an array, a SciPy matrix or a tensor."""
    if not isinstance(source, str | PathLike):
        return NodeFeatures(checked_features(as_matrix(source)))
    path = Path(source)
    with naming(path):
        if suffix_of(path) in TABLES:
            return _read_feature_table(path, id_column)
        if suffix_of(path) in MATRICES:
            return NodeFeatures(checked_features(_read_matrix(path)), None, str(path))
        raise InputError(f"cannot read features from {path.suffix!r}; use {', '.join(TABLES + MATRICES)}")


def _read_matrix(path: Path) -> Any:
    """The one array of an `.npy` or `.npz`, or the SciPy matrix of an `.npz`; never a pickle."""
    if suffix_of(path) == ".npy":
        return read_npy(path)
    # An open file: NumPy leaves its own open if the archive is damaged.
    with opening(path, "NumPy file"), path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        if {"format", "shape", "data"} <= set(archive.files):
            return sparse.load_npz(path)
        if len(archive.files) == 1:
            return frozen(archive[archive.files[0]])
        names = ", ".join(archive.files[:6]) or "nothing"
        raise InputError(f"holds {names}; save one array, or a matrix with scipy.sparse.save_npz")


def read_npy(path: Path) -> NDArray[Any]:
    """The array of an `.npy`; a pickle in it is refused."""
    with opening(path, "NumPy file"), path.open("rb") as file:
        return frozen(np.lib.format.read_array(file, allow_pickle=False))


def _read_feature_table(path: Path, id_column: str | None) -> NodeFeatures:
    from spgcl.io.tables import read_ids, read_table, require_distinct

    table = read_table(path, id_column)
    key = table.find(id_column) if id_column is not None else 0
    others = table.others(key)
    if not others:
        raise InputError(f"no feature columns besides {table.names[key]!r}; add some or use --structural")
    ids = read_ids(table, key)
    require_distinct(table, ids)
    matrix = checked_features(stack_columns(table, others))
    # A single column of vectors has one name for all of them.
    named = table.headed and matrix.shape[1] == len(others)
    names = tuple(table.names[column] for column in others) if named else ()
    return NodeFeatures(matrix, ids, str(path), table.notes, names)


def stack_columns(table: "Table", columns: list[int]) -> NDArray[np.float32]:
    """The columns of a table side by side; one column of vectors as it is."""
    from spgcl.io.tables import read_numbers, read_vectors

    if len(columns) == 1 and (vectors := read_vectors(table, columns[0])) is not None:
        return frozen(vectors)
    matrix = np.empty((len(table.columns[0]), len(columns)), dtype=np.float32)
    for position, column in enumerate(columns):
        matrix[:, position] = read_numbers(table, column)
    return frozen(matrix)
