"""People's files and objects become graphs here, and embeddings become files."""

from spgcl.io.embeddings import read_embeddings, require_free, write_embedding_file, write_embeddings
from spgcl.io.labels import read_labels
from spgcl.io.read import read_graph

__all__ = [
    "read_embeddings",
    "read_graph",
    "read_labels",
    "require_free",
    "write_embedding_file",
    "write_embeddings",
]
