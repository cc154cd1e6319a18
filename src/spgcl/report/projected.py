"""The positions of a run's nodes on the map, computed once and kept in `map.parquet`."""

from contextlib import suppress
from typing import Literal

from spgcl.errors import InputError
from spgcl.io import Coordinates, read_coordinates, write_map
from spgcl.io.embeddings import MAP
from spgcl.report.material import Material
from spgcl.runs.plane import has_umap, principal_plane, umap_plane
from spgcl.runs.record import deriving

Projection = Literal["auto", "umap", "pca"]
# With fewer nodes the neighbourhoods of UMAP would cover the whole graph.
_FEWEST_NODES = 16


def plane_of_run(material: Material, projection: Projection) -> Coordinates:
    """Positions of the shown nodes by the projection; those of an earlier report are used again."""
    if projection == "auto":
        projection = "umap" if has_umap() and len(material.shown) >= _FEWEST_NODES else "pca"
    path = material.folder / MAP
    stored = read_coordinates(path) if path.exists() else None
    if stored and stored.projection == projection and len(stored.points) == len(material.shown):
        return stored
    vectors = material.vectors[material.shown]
    plane = umap_plane(vectors, *material.nearest) if projection == "umap" else principal_plane(vectors)
    # A page can also be made of a run in a read-only folder.
    with suppress(InputError, OSError), deriving(material.folder, material.run):
        write_map(material.folder, material.graph.node_ids[material.shown], plane)
    return plane
