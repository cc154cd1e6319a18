"""The plane of a run: computed once, then kept in the run."""

from typing import Literal

import numpy as np

from spgcl.io import Coordinates, read_coordinates, write_embeddings, write_map
from spgcl.io.embeddings import MAP
from spgcl.report.material import Material
from spgcl.runs.plane import has_umap, principal_plane, umap_plane

Projection = Literal["auto", "umap", "pca"]
# UMAP of fewer nodes says less than the principal plane, and its neighbourhoods would be all there is.
_FEWEST_NODES = 16


def plane_of_run(material: Material, projection: Projection) -> Coordinates:
    """Points of the shown nodes: those the run has, or else new ones, which the run then has."""
    wanted = projection
    if wanted == "auto":
        wanted = "umap" if has_umap() and len(material.shown) >= _FEWEST_NODES else "pca"
    stored = _stored(material)
    if stored is not None and stored.projection == wanted:
        return stored
    vectors = material.vectors[material.shown]
    plane = umap_plane(vectors, *material.nearest) if wanted == "umap" else principal_plane(vectors)
    _store(material, plane)
    return plane


def _stored(material: Material) -> Coordinates | None:
    """The map of the shown nodes, else the coordinates beside the embeddings."""
    path = material.folder / MAP
    if path.exists():
        plane = read_coordinates(path)
        return plane if plane is not None and len(plane.points) == len(material.shown) else None
    if material.run.embedding_format != "parquet":
        return None
    plane = read_coordinates(material.folder / "embeddings.parquet")
    if plane is None or plane.projection == "umap":
        return plane
    return Coordinates(np.ascontiguousarray(plane.points[material.shown]), plane.projection)


def _store(material: Material, plane: Coordinates) -> None:
    """Beside the embeddings where there is a point for each of them, else in a file of its own."""
    ids = material.graph.node_ids
    if material.run.embedding_format == "parquet" and not material.sampled:
        write_embeddings(material.folder, material.vectors, ids, "parquet", plane)
    else:
        write_map(material.folder, ids[material.shown], plane)
