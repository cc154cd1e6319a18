"""Node features given apart from a graph: tables with ids, or matrices whose rows are the nodes in order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spgcl.errors import InputError
from spgcl.graph.checks import Features, checked_features, checked_ids, frozen
from spgcl.io.arrow import from_arrow, to_arrow
from spgcl.io.objects import as_matrix, is_frame
from spgcl.io.opening import naming, opening, suffix_of

if TYPE_CHECKING:
    from spgcl.io.tables import Table

TABLES = (".csv", ".tsv", ".txt", ".parquet", ".feather")
MATRICES = (".npy", ".npz")


@dataclass(frozen=True, eq=False)
class NodeFeatures:
    """Validated feature rows with the ids they belong to; without ids, rows are nodes 0 ... N - 1.

    Attributes:
        origin: The file, or "the features" for an object in memory.
        names: Names of the columns, if they have any.
        encoding: How they were made of other columns, see `spgcl.io.encoding`; None for numbers as they are.
    """

    matrix: Features
    ids: NDArray[Any] | None = None
    origin: str = "the features"
    notes: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    encoding: Mapping[str, Any] | None = None


def read_features(
    source: Any,
    *,
    id_column: str | None = None,
    columns: Sequence[str] | None = None,
    encoding: Mapping[str, Any] | None = None,
) -> NodeFeatures:
    """Features from a path, a table in memory, an array, a SciPy matrix or a tensor.

    Args:
        source: Where they are.
        id_column: Column of node ids in a table.
        columns: Columns of a table to use; all others if None.
        encoding: What was learned from the columns of another table, to be applied to this one.
    """
    is_path = isinstance(source, str | PathLike)
    if columns and not is_frame(source) and not (is_path and suffix_of(Path(source)) in TABLES):
        raise InputError(f"columns {', '.join(columns)} are those of a table; leave them out (--columns)")
    if is_frame(source):
        return _read_feature_table(source, id_column, columns, encoding)
    if not isinstance(source, str | PathLike):
        return NodeFeatures(checked_features(as_matrix(source)))
    path = Path(source)
    with naming(path):
        if suffix_of(path) in TABLES:
            return _read_feature_table(path, id_column, columns, encoding)
        if suffix_of(path) in MATRICES:
            matrix = checked_features(_read_matrix(path))
            return NodeFeatures(matrix, ids_beside(path, matrix.shape[0]), str(path))
        raise InputError(f"cannot read features from {path.suffix!r}; use {', '.join(TABLES + MATRICES)}")


def holds_matrix(path: Path) -> bool:
    """Whether an `.npz` holds a SciPy matrix."""
    with (
        opening(path, "NumPy archive"),
        path.open("rb") as file,
        np.load(file, allow_pickle=False) as archive,
    ):
        return {"format", "shape", "data"} <= set(archive.files)


def ids_beside(path: Path, count: int) -> NDArray[Any] | None:
    """Ids of the rows of NAME.npy or NAME.npz from NAME.nodes.txt, one per line; None without that file."""
    nodes = path.with_suffix(".nodes.txt")
    if not nodes.exists():
        return None
    from spgcl.io.tables import whole_or_text

    with opening(nodes, "list of nodes"):
        lines = nodes.read_bytes().decode("utf-8").splitlines()
    if len(lines) != count:
        raise InputError(f"{nodes}: {len(lines)} ids for {count} rows of {path.name}; give one id per row")
    return checked_ids(from_arrow(whole_or_text(to_arrow(np.array(lines, dtype=object)))), count)


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


def _read_feature_table(
    source: Any,
    id_column: str | None,
    columns: Sequence[str] | None,
    encoding: Mapping[str, Any] | None,
) -> NodeFeatures:
    from spgcl.io.tables import read_ids, read_table, require_distinct

    table = read_table(source, id_column, *(columns or ()))
    key = table.key(id_column)
    others = [table.find(name) for name in columns] if columns else table.others(key)
    if not others:
        raise InputError(f"no feature columns besides {table.names[key]!r}; add some or use --structural")
    ids = read_ids(table, key)
    require_distinct(table, ids)
    if encoding is not None:
        matrix, names = _encoded(table, encoding)
        return NodeFeatures(matrix, ids, str(table.path), table.notes, names, encoding)
    try:
        matrix = checked_features(stack_columns(table, others))
    except InputError as error:
        return _learned(table, ids, others, error)
    # A single column of vectors has one name for all of them.
    named = table.headed and matrix.shape[1] == len(others)
    names = tuple(table.names[column] for column in others) if named else ()
    return NodeFeatures(matrix, ids, str(table.path), table.notes, names)


def _learned(table: "Table", ids: NDArray[Any], columns: list[int], problem: InputError) -> NodeFeatures:
    """Features of a table whose columns are not all numbers; they need names."""
    from spgcl.io.encoding import described, learn_encoding

    if not table.headed:
        raise problem
    encoding = learn_encoding(table, columns)
    matrix, names = _encoded(table, encoding)
    how = f"{table.path.name}: {described(encoding)}: {len(names)} features"
    return NodeFeatures(matrix, ids, str(table.path), (*table.notes, how), names, encoding)


def _encoded(table: "Table", encoding: Mapping[str, Any]) -> tuple[Features, tuple[str, ...]]:
    from spgcl.io.encoding import encoded

    matrix, names = encoded(table, encoding)
    return checked_features(frozen(matrix)), names


def stack_columns(table: "Table", columns: list[int]) -> NDArray[np.float32]:
    """The columns of a table side by side; one column of vectors as it is."""
    from spgcl.io.tables import read_numbers, read_vectors

    if len(columns) == 1 and (vectors := read_vectors(table, columns[0])) is not None:
        return frozen(vectors)
    matrix = np.empty((len(table.columns[0]), len(columns)), dtype=np.float32)
    for position, column in enumerate(columns):
        matrix[:, position] = read_numbers(table, column)
    return frozen(matrix)
