"""Embeddings on disk, with the node each row belongs to."""

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from spgcl.errors import InputError, unknown
from spgcl.files import replacing
from spgcl.graph.checks import checked_ids
from spgcl.io.opening import opening, require_file

Format = Literal["parquet", "npy", "csv"]
NODES = "nodes.txt"
# Positions on the map of the page.
MAP = "map.parquet"
_PROJECTION = b"spgcl.projection"


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Where nodes are drawn.

    Attributes:
        points: One point a node, shape (nodes, 2).
        projection: How they were found: "pca" or "umap".
    """

    points: NDArray[np.float32]
    projection: str


def write_embeddings(
    folder: str | PathLike[str],
    embeddings: NDArray[np.float32],
    node_ids: NDArray[Any],
    format: Format = "parquet",
    coordinates: Coordinates | None = None,
) -> Path:
    """Write `embeddings.parquet`, `.npy` (with `nodes.txt`) or `.csv` into `folder` and return its path.

    A folder holds one set of embeddings: those in another format are removed, and so is the map of earlier
    ones. Coordinates become the columns `x` and `y` of a Parquet file; other formats leave them out.
    """
    if format not in get_args(Format):
        raise unknown("format", str(format), get_args(Format))
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    path = write_embedding_file(
        place / f"embeddings.{format}", embeddings, node_ids, nodes=place / NODES, coordinates=coordinates
    )
    (place / MAP).unlink(missing_ok=True)
    for other in get_args(Format):
        if other != format:
            (place / f"embeddings.{other}").unlink(missing_ok=True)
    if format != "npy":
        (place / NODES).unlink(missing_ok=True)
    return path


def write_embedding_file(
    path: str | PathLike[str],
    embeddings: NDArray[np.float32],
    node_ids: NDArray[Any],
    *,
    nodes: Path | None = None,
    coordinates: Coordinates | None = None,
) -> Path:
    """Write one file whose suffix names the format: .parquet, .csv, or .npy with the ids in a text file.

    Each file appears whole, under its name, or not at all; the same input gives the same bytes.

    Args:
        path: The file to write.
        embeddings: One row a node.
        node_ids: One id a row.
        nodes: Where an .npy leaves its ids; beside it, as NAME.nodes.txt, by default.
        coordinates: One point a row, the columns `x` and `y` of a Parquet file.
    """
    file = Path(path)
    format = _format_of(file)
    matrix = np.ascontiguousarray(embeddings, dtype=np.float32)
    if matrix.ndim != 2 or not matrix.shape[1]:
        raise InputError(f"embeddings need two dimensions (nodes x columns), not shape {matrix.shape}")
    ids = checked_ids(node_ids, len(matrix))
    require_ids(ids, format)
    if format == "npy":
        lines = _lines(ids)
        # The ids first: whoever sees the array finds its nodes beside it.
        with replacing(nodes or file.with_suffix(".nodes.txt")) as temporary:
            temporary.write_bytes(lines)
    with replacing(file) as temporary:
        if format == "parquet":
            columns = {"node": _id_array(ids), "embedding": _vectors(matrix)}
            _save_parquet(temporary, columns, coordinates, compressed=_has_zeros(matrix))
        elif format == "csv":
            _save_csv(temporary, matrix, ids)
        else:
            _save_array(temporary, matrix)
    return file


def write_map(folder: Path, node_ids: NDArray[Any], coordinates: Coordinates) -> Path:
    """Write `map.parquet`, the points of some or all nodes, into a run."""
    with replacing(folder / MAP) as temporary:
        _save_parquet(temporary, {"node": _id_array(node_ids)}, coordinates)
    return folder / MAP


def read_coordinates(path: Path) -> Coordinates | None:
    """The columns `x` and `y` of a Parquet file written here; None when it has none."""
    from pyarrow import parquet

    from spgcl.io.arrow import numbers_from_arrow

    require_file(path)
    with opening(path, "Parquet file"), path.open("rb") as opened:
        file = parquet.ParquetFile(opened, pre_buffer=False)
        metadata = file.schema_arrow.metadata or {}
        if _PROJECTION not in metadata:
            return None
        table = file.read(columns=["x", "y"], use_threads=False)
        points = np.stack([numbers_from_arrow(table[name]) for name in ("x", "y")], axis=1)
    return Coordinates(points.astype(np.float32, copy=False), metadata[_PROJECTION].decode())


def require_ids(node_ids: NDArray[Any], format: str) -> None:
    """Refuse ids that a format cannot hold; writing does so too, but comes after all work is done."""
    if format == "npy":
        _refuse_in_ids(node_ids, "\n", f"a line break, which {NODES} cannot hold; use parquet or csv")
    elif format == "csv":
        _refuse_in_ids(node_ids, "\0", "a NUL character, which CSV cannot hold; use parquet or npy")


def require_free(path: str | PathLike[str], *, overwrite: bool) -> None:
    """Refuse, before any work is done, a file that embeddings cannot be written to or would replace."""
    file = Path(path)
    _format_of(file)
    if not file.parent.is_dir():
        raise InputError(f"{file}: there is no folder {file.parent}; make it first")
    if file.exists() and not overwrite:
        raise InputError(f"{file} exists; replace it with --overwrite or choose another --out")


def _format_of(file: Path) -> str:
    format = file.suffix.removeprefix(".")
    if format not in get_args(Format):
        raise InputError(f"{file}: cannot write embeddings as {file.suffix!r}; use .parquet, .npy or .csv")
    return format


def read_embeddings(folder: str | PathLike[str]) -> tuple[NDArray[np.float32], NDArray[Any]]:
    """Embeddings and node ids of a folder that `write_embeddings` wrote.

    Text does not say whether 7 was a number: from `.npy` and `.csv`, ids that are all integers are int64.
    """
    place = Path(folder)
    present = [name for name in get_args(Format) if (place / f"embeddings.{name}").exists()]
    if not present:
        raise InputError(f"{place}: no embeddings.parquet, .npy or .csv in it; is it a run?")
    if len(present) > 1:
        raise InputError(f"{place}: embeddings in several formats ({', '.join(present)}); keep one")
    path = place / f"embeddings.{present[0]}"
    return _load_array(path) if present[0] == "npy" else _load_table(path)


def _save_array(path: Path, matrix: NDArray[np.float32]) -> None:
    with path.open("wb") as file:
        np.save(file, matrix)


def _refuse_in_ids(ids: NDArray[Any], character: str, what: str) -> None:
    for node in ids.tolist():
        if isinstance(node, str) and character in node:
            raise InputError(f"node id {node!r} has {what}")


def _lines(ids: NDArray[Any]) -> bytes:
    return "".join(f"{node}\n" for node in ids.tolist()).encode("utf-8")


def _id_array(ids: NDArray[Any]) -> Any:
    from spgcl.io.arrow import numbers_to_arrow, text_to_arrow

    return numbers_to_arrow(ids.astype(np.int64, copy=False)) if ids.dtype.kind == "i" else text_to_arrow(ids)


def _vectors(matrix: NDArray[np.float32]) -> Any:
    import pyarrow as pa

    from spgcl.io.arrow import numbers_to_arrow

    return pa.FixedSizeListArray.from_arrays(numbers_to_arrow(matrix.reshape(-1)), matrix.shape[1])


def _has_zeros(matrix: NDArray[np.float32]) -> bool:
    """Whether compression shortens the matrix: nothing else repeats in it, which a few rows tell."""
    rows = matrix[:: max(1, len(matrix) // 64)]
    return bool(np.count_nonzero(rows) < 0.9 * rows.size)


def _save_parquet(
    path: Path, columns: dict[str, Any], coordinates: Coordinates | None, *, compressed: bool = True
) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    from spgcl.io.arrow import numbers_to_arrow

    table = pa.table(columns)
    if coordinates is not None:
        x, y = (numbers_to_arrow(axis) for axis in coordinates.points.T.astype(np.float32, copy=False))
        named = {_PROJECTION: coordinates.projection.encode()}
        table = pa.table({**columns, "x": x, "y": y}, metadata=named)
    # Numbers and ids hardly ever repeat: a dictionary of them would be tried and given up.
    parquet.write_table(table, path, use_dictionary=False, compression="snappy" if compressed else "none")


def _save_csv(path: Path, matrix: NDArray[np.float32], ids: NDArray[Any]) -> None:
    import pyarrow as pa
    from pyarrow import csv

    from spgcl.io.arrow import numbers_to_arrow

    columns = {f"embedding_{place}": numbers_to_arrow(column) for place, column in enumerate(matrix.T)}
    with path.open("wb") as file:
        csv.write_csv(pa.table({"node": _id_array(ids), **columns}), file)


def _load_array(path: Path) -> tuple[NDArray[np.float32], NDArray[Any]]:
    nodes = path.with_name(NODES)
    require_file(nodes)
    with opening(path, "NumPy file"), path.open("rb") as file:
        matrix = np.lib.format.read_array(file, allow_pickle=False)
    with opening(nodes, "list of nodes"):
        lines = nodes.read_bytes().decode("utf-8").split("\n")[:-1]
    if len(lines) != len(matrix):
        raise InputError(
            f"{nodes}: {len(lines)} nodes for {len(matrix)} rows of {path.name}; write them again"
        )
    return matrix, _numbers_or_text(lines)


def _numbers_or_text(lines: list[str]) -> NDArray[Any]:
    try:
        numbers = np.array([int(line) for line in lines], dtype=np.int64)
    except (ValueError, OverflowError):
        return np.array(lines, dtype=object)
    return numbers if [str(number) for number in numbers.tolist()] == lines else np.array(lines, dtype=object)


def _load_table(path: Path) -> tuple[NDArray[np.float32], NDArray[Any]]:
    from spgcl.io.tables import read_ids, read_numbers, read_table, read_vectors

    table = read_table(path, named_columns=True)
    node = table.find("node")
    if path.suffix == ".parquet":
        vectors = read_vectors(table, table.find("embedding"))
        if vectors is None:
            raise InputError(f"{path}: column 'embedding' holds no vectors; write the embeddings again")
        return vectors, read_ids(table, node, exact=True)
    columns = [read_numbers(table, column) for column in range(len(table.columns)) if column != node]
    return np.stack(columns, axis=1), read_ids(table, node, exact=True)
