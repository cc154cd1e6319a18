"""People's files and objects become graphs here, and embeddings become files."""

from spgcl.io.embeddings import (
    Coordinates,
    read_coordinates,
    read_embedding_file,
    read_embeddings,
    require_free,
    require_ids,
    write_embedding_file,
    write_embeddings,
    write_map,
)
from spgcl.io.labels import read_labels
from spgcl.io.read import read_graph

__all__ = [
    "Coordinates",
    "read_coordinates",
    "read_embedding_file",
    "read_embeddings",
    "read_graph",
    "read_labels",
    "require_free",
    "require_ids",
    "write_embedding_file",
    "write_embeddings",
    "write_map",
]
