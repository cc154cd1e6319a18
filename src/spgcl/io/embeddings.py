"""Embeddings on disk, with the node of each row."""

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from spgcl.errors import InputError, unknown
from spgcl.files import replacing
from spgcl.graph.checks import checked_ids
from spgcl.io.arrow import from_arrow, to_arrow
from spgcl.io.opening import opening
from spgcl.io.shards import has_shards, read_shards

Format = Literal["parquet", "npy", "csv"]
NODES = "nodes.txt"
# Positions on the map of the page.
MAP = "map.parquet"
_PROJECTION = b"spgcl.projection"
# A character that ids must not have, per format.
_UNWRITABLE = {
    "npy": ("\n", f"a line break, which {NODES} cannot hold; use parquet or csv"),
    "csv": ("\0", "a NUL character, which CSV cannot hold; use parquet or npy"),
}


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Positions of nodes on a map.

    Attributes:
        points: One point per node, shape (nodes, 2).
        projection: How they were computed: "pca" or "umap".
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

    A folder holds one set of embeddings: those in another format and the map of earlier ones are removed.
    Coordinates become the columns `x` and `y` of a Parquet file; other formats leave them out.
    """
    if format not in get_args(Format):
        raise unknown("format", str(format), get_args(Format))
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    path = write_embedding_file(
        folder / f"embeddings.{format}", embeddings, node_ids, nodes=folder / NODES, coordinates=coordinates
    )
    outdated = [MAP, *(f"embeddings.{other}" for other in get_args(Format) if other != format)]
    for name in outdated if format == "npy" else [*outdated, NODES]:
        (folder / name).unlink(missing_ok=True)
    return path


def write_embedding_file(
    path: str | PathLike[str],
    embeddings: NDArray[np.float32],
    node_ids: NDArray[Any],
    *,
    nodes: Path | None = None,
    coordinates: Coordinates | None = None,
) -> Path:
    """Write one file in the format of its suffix: .parquet, .csv, or .npy with the ids in a text file.

    The ids of NAME.npy go to `nodes`, else to NAME.nodes.txt; coordinates become the columns `x` and `y` of a
    Parquet file. Files are written atomically; the same input gives the same bytes.
    """
    file = Path(path)
    format = _format_of(file)
    matrix = np.ascontiguousarray(embeddings, dtype=np.float32)
    if matrix.ndim != 2 or not matrix.shape[1]:
        raise InputError(f"embeddings need two dimensions (nodes x columns), not shape {matrix.shape}")
    ids = checked_ids(node_ids, len(matrix))
    require_ids(ids, format)
    if format == "npy":
        lines = "".join(f"{node}\n" for node in ids.tolist()).encode("utf-8")
        # Ids first: once the array is there, so are its nodes.
        with replacing(nodes or file.with_suffix(".nodes.txt")) as temporary:
            temporary.write_bytes(lines)
    with replacing(file) as temporary:
        if format == "parquet":
            _save_parquet(temporary, ids, coordinates, matrix)
        elif format == "csv":
            _save_csv(temporary, matrix, ids)
        else:
            with temporary.open("wb") as opened:
                np.save(opened, matrix)
    return file


def write_map(folder: Path, node_ids: NDArray[Any], coordinates: Coordinates) -> Path:
    """Write `map.parquet`, the points of some or all nodes, into a run."""
    with replacing(folder / MAP) as temporary:
        _save_parquet(temporary, node_ids, coordinates)
    return folder / MAP


def read_coordinates(path: Path) -> Coordinates | None:
    """The columns `x` and `y` of a Parquet file written by this module; None if it has none."""
    from pyarrow import parquet

    with opening(path, "Parquet file"), path.open("rb") as opened:
        file = parquet.ParquetFile(opened, pre_buffer=False)
        metadata = file.schema_arrow.metadata or {}
        if _PROJECTION not in metadata:
            return None
        table = file.read(columns=["x", "y"], use_threads=False)
        points = np.stack([from_arrow(table[name]) for name in ("x", "y")], axis=1)
    return Coordinates(points.astype(np.float32, copy=False), metadata[_PROJECTION].decode())


def require_ids(node_ids: NDArray[Any], format: str) -> None:
    """Refuse ids that a format cannot hold. Writing does so too, but only after training."""
    if format not in _UNWRITABLE:
        return
    character, problem = _UNWRITABLE[format]
    for node in node_ids.tolist():
        if isinstance(node, str) and character in node:
            raise InputError(f"node id {node!r} has {problem}")


def require_free(path: str | PathLike[str], *, overwrite: bool) -> None:
    """Refuse a file that embeddings cannot be written to or would replace, before any work is done."""
    file = Path(path)
    _format_of(file)
    if not file.parent.is_dir():
        raise InputError(f"{file}: there is no folder {file.parent}; create it first")
    if file.exists() and not overwrite:
        raise InputError(f"{file} exists; replace it with --overwrite or choose another --out")


def _format_of(file: Path) -> str:
    format = file.suffix.removeprefix(".")
    if format not in get_args(Format):
        raise InputError(f"{file}: cannot write embeddings as {file.suffix!r}; use .parquet, .npy or .csv")
    return format


def has_embeddings(folder: Path, format: str) -> bool:
    """Whether a run has embeddings, in a file of that format or in several files."""
    return (folder / f"embeddings.{format}").exists() or has_shards(folder)


def read_embeddings(folder: str | PathLike[str]) -> tuple[NDArray[np.float32], NDArray[Any]]:
    """Embeddings and node ids of a folder written by `write_embeddings`.

    Text does not tell whether 7 was a number: from `.npy` and `.csv`, ids that are all integers are int64.
    """
    if has_shards(Path(folder)):
        ids, vectors = zip(*read_shards(Path(folder)), strict=True)
        return np.concatenate(vectors), np.concatenate(ids)
    present = [name for name in get_args(Format) if (Path(folder) / f"embeddings.{name}").exists()]
    if not present:
        raise InputError(f"{folder}: no embeddings.parquet, .npy or .csv in it; is it a run?")
    if len(present) > 1:
        raise InputError(f"{folder}: embeddings in several formats ({', '.join(present)}); keep one")
    path = Path(folder) / f"embeddings.{present[0]}"
    vectors, ids = _load_array(path, path.with_name(NODES)) if present[0] == "npy" else _load_table(path)
    if vectors.ndim != 2 or not vectors.size or vectors.dtype.kind != "f":
        raise InputError(
            f"{path}: {vectors.dtype} of shape {vectors.shape} are no vectors; fit the run again"
        )
    return vectors.astype(np.float32, copy=False), ids


def read_embedding_file(path: str | PathLike[str]) -> tuple[NDArray[np.float32], NDArray[Any]]:
    """Embeddings and node ids of one file, as `write_embedding_file` wrote it.

    An `.npy` without a list of nodes beside it has the nodes 0, 1, 2 and so on.
    """
    file = Path(path)
    try:
        if _format_of(file) != "npy":
            return _load_table(file)
        lists = (file.with_suffix(".nodes.txt"), file.with_name(NODES))
        nodes = next((name for name in lists if name.exists()), None)
        return _load_array(file, nodes)
    except InputError as error:
        raise InputError(
            f"{file} holds no embeddings ({error}); name a run, or a file that spgcl embed or fit wrote"
        ) from None


def embedding_table(
    ids: NDArray[Any], matrix: NDArray[np.float32] | None, coordinates: Coordinates | None = None
) -> Any:
    """An Arrow table with the columns `node`, `embedding`, and `x` and `y` if there are coordinates."""
    import pyarrow as pa

    columns, metadata = {"node": to_arrow(ids)}, None
    if matrix is not None:
        flat = to_arrow(np.ascontiguousarray(matrix).reshape(-1))
        columns["embedding"] = pa.FixedSizeListArray.from_arrays(flat, matrix.shape[1])
    if coordinates is not None:
        columns["x"], columns["y"] = map(to_arrow, coordinates.points.T.astype(np.float32, copy=False))
        metadata = {_PROJECTION: coordinates.projection.encode()}
    return pa.table(columns, metadata=metadata)


def _save_parquet(
    path: Path,
    ids: NDArray[Any],
    coordinates: Coordinates | None,
    matrix: NDArray[np.float32] | None = None,
) -> None:
    from pyarrow import parquet

    compression = "snappy"
    if matrix is not None:
        # Only zeros repeat in a matrix of floats: a few rows tell whether compression is worth its time.
        rows = matrix[:: max(1, len(matrix) // 64)]
        compression = "snappy" if np.count_nonzero(rows) < 0.9 * rows.size else "none"
    # No dictionaries: numbers and ids hardly ever repeat.
    table = embedding_table(ids, matrix, coordinates)
    with path.open("wb") as file:
        parquet.write_table(table, file, use_dictionary=False, compression=compression)


def _save_csv(path: Path, matrix: NDArray[np.float32], ids: NDArray[Any]) -> None:
    import pyarrow as pa
    from pyarrow import csv

    columns = {f"embedding_{index}": to_arrow(column) for index, column in enumerate(matrix.T)}
    with path.open("wb") as file:
        csv.write_csv(pa.table({"node": to_arrow(ids), **columns}), file)


def _load_array(path: Path, nodes: Path | None) -> tuple[NDArray[np.float32], NDArray[Any]]:
    from spgcl.io.tables import whole_or_text

    with opening(path, "NumPy file"), path.open("rb") as file:
        matrix = np.lib.format.read_array(file, allow_pickle=False)
    if matrix.ndim != 2 or matrix.dtype.kind != "f":
        raise InputError(f"{path}: {matrix.dtype} of shape {matrix.shape} is no matrix of vectors")
    if nodes is None:
        return matrix, np.arange(len(matrix))
    with opening(nodes, "list of nodes"):
        lines = nodes.read_bytes().decode("utf-8").split("\n")[:-1]
    if matrix.shape[:1] != (len(lines),):
        raise InputError(
            f"{nodes}: {len(lines)} nodes for {path.name} of shape {matrix.shape}; write both again"
        )
    return matrix, from_arrow(whole_or_text(to_arrow(np.array(lines, dtype=object))))


def _load_table(path: Path) -> tuple[NDArray[np.float32], NDArray[Any]]:
    from spgcl.io.tables import read_ids, read_numbers, read_table, read_vectors

    table = read_table(path, named_columns=True)
    node = table.find("node")
    if path.suffix == ".parquet":
        vectors = read_vectors(table, table.find("embedding"))
        if vectors is None:
            raise InputError(f"{path}: column 'embedding' holds no vectors; write the embeddings again")
        return vectors, read_ids(table, node, exact=True)
    columns = [read_numbers(table, column) for column in table.others(node)]
    return np.stack(columns, axis=1), read_ids(table, node, exact=True)
