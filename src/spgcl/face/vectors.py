"""Vectors of nodes with their ids: as tables, searched, written."""

from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spgcl.errors import InputError
from spgcl.graph.display import facts
from spgcl.io import require_free, write_embedding_file
from spgcl.io.embeddings import embedding_table
from spgcl.runs.embed import nearest
from spgcl.runs.plane import principal_plane


class Vectors:
    """Vectors of nodes, with the ids of the nodes."""

    def __init__(self, vectors: NDArray[np.float32], nodes: NDArray[Any]) -> None:
        self._given = vectors, nodes

    def _read(self) -> tuple[NDArray[np.float32], NDArray[Any]]:
        return self._given

    @property
    def vectors(self) -> NDArray[np.float32]:
        """One row per node, float32."""
        return self._read()[0]

    @property
    def nodes(self) -> NDArray[Any]:
        """The ids of the nodes, in row order."""
        return self._read()[1]

    def __len__(self) -> int:
        return len(self.nodes)

    def __getitem__(self, node: Any) -> NDArray[np.float32]:
        """The vector of the node with this id; an integer id may be given as text."""
        row = self._rows.get(str(node))
        if row is None:
            raise InputError(f"no node {node!r} here; the ids look like {self.nodes.tolist()[0]!r}")
        found: NDArray[np.float32] = self.vectors[row]
        return found

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {str(node): row for row, node in enumerate(self.nodes.tolist())}

    def to_arrow(self) -> Any:
        """A PyArrow table with the columns `node` and `embedding`, a list of fixed size."""
        return embedding_table(self.nodes, self.vectors)

    def to_pandas(self) -> Any:
        """A pandas data frame with one column per dimension, indexed by node."""
        try:
            import pandas
        except ImportError:
            raise InputError("pandas is not installed; pip install pandas, or use to_arrow()") from None
        return pandas.DataFrame(self.vectors, index=pandas.Index(self.nodes, name="node"))

    def similar(self, nodes: Any, k: int = 10) -> list[dict[str, Any]]:
        """The `k` nodes most similar to a node, or to each of several, by cosine similarity; exact.

        Every record has `node` and `similarity`; for several nodes also `of`, the one it is similar to.
        """
        asked = [nodes] if isinstance(nodes, str) or np.ndim(nodes) == 0 else [*nodes]
        return nearest(self.vectors, self.nodes, asked, k)

    def save(self, path: str | PathLike[str], *, overwrite: bool = False) -> Path:
        """Write a `.parquet`, `.csv` or `.npy`, as `spgcl embed` does."""
        require_free(path, overwrite=overwrite)
        plane = principal_plane(self.vectors) if Path(path).suffix == ".parquet" else None
        return write_embedding_file(path, self.vectors, self.nodes, coordinates=plane)

    @property
    def _pairs(self) -> dict[str, Any]:
        return {"nodes": f"{len(self):,}", "width": f"{self.vectors.shape[1]:,}"}

    def __repr__(self) -> str:
        described = ", ".join(f"{value} {name}" for name, value in self._pairs.items())
        return f"{type(self).__name__}({described})"

    def _repr_html_(self) -> str:
        return facts(type(self).__name__, self._pairs)
