"""Embeddings in several Parquet files, one per block of nodes, for graphs larger than memory."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spgcl.errors import InputError
from spgcl.files import replacing
from spgcl.io.arrow import from_arrow, to_arrow
from spgcl.io.opening import opening

FOLDER = "embeddings"
_ORIGIN = b"spgcl.origin"


def shard(folder: Path, index: int) -> Path:
    """The file of a block."""
    return folder / f"part-{index:05}.parquet"


def write_shard(path: Path, ids: Any, vectors: NDArray[np.float32], origin: str) -> None:
    """Write one file with the columns `node` and `embedding`; the same input gives the same bytes.

    Args:
        path: See `shard`.
        ids: The nodes, an Arrow array.
        vectors: One row per node.
        origin: What the vectors were computed from.
    """
    import pyarrow as pa
    from pyarrow import parquet

    flat = to_arrow(np.ascontiguousarray(vectors).reshape(-1))
    columns = {"node": ids, "embedding": pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])}
    with replacing(path) as temporary:
        table = pa.table(columns, metadata={_ORIGIN: origin.encode()})
        parquet.write_table(table, temporary, use_dictionary=False, compression="none")


def is_written(path: Path, origin: str) -> bool:
    """Whether a whole file of that origin is there."""
    from pyarrow import ArrowInvalid, parquet

    if not path.exists():
        return False
    try:
        metadata = parquet.read_schema(path).metadata or {}
    except (ArrowInvalid, OSError):
        return False
    return bool(metadata.get(_ORIGIN) == origin.encode())


def has_shards(run: Path) -> bool:
    """Whether a run has its embeddings in several files."""
    return shard(run / FOLDER, 0).exists()


def read_shards(run: Path) -> Iterator[tuple[NDArray[Any], NDArray[np.float32]]]:
    """Ids and vectors of a run, one file after the other."""
    from pyarrow import parquet

    for number, path in enumerate(sorted((run / FOLDER).glob("part-*.parquet"))):
        if path != shard(run / FOLDER, number):
            raise InputError(f"{shard(run / FOLDER, number)} is missing; fit the run again with --resume")
        with opening(path, "Parquet file"):
            table = parquet.read_table(path, use_threads=False, pre_buffer=False)
            vectors = table["embedding"].combine_chunks()
            yield (
                from_arrow(table["node"]),
                from_arrow(vectors.flatten()).reshape(len(vectors), vectors.type.list_size),
            )
