"""The page of one run."""

from collections.abc import Callable

from spgcl.report.charts import Item
from spgcl.report.curves import training
from spgcl.report.homophily import homophily
from spgcl.report.material import Material
from spgcl.report.points import map_data
from spgcl.report.projected import Projection, plane_of_run
from spgcl.report.reliability import without_labels
from spgcl.report.scores import evaluation
from spgcl.report.summary import summary

_PROJECTIONS = {"umap": "UMAP by cosine distance", "pca": "the first two principal components"}


def describe_run(material: Material, *, say: Callable[[str], None], projection: Projection = "auto") -> Item:
    """The page of a run as plain data; `say` is called with what is being done, in a few words."""
    say("computing the map")
    plane = plane_of_run(material, projection)
    points = map_data(material, plane)
    say("comparing halves of the graph")
    signal = without_labels(material)
    say("measuring homophily")
    mixing = homophily(material)
    run = material.run
    return {
        "title": f"{run.method} on {run.dataset}",
        "sections": [
            summary(material.folder, run, material.evaluation, material.graph.notes),
            signal,
            training(run),
            {"id": "map", "title": "Map", "text": _map_words(material, plane.projection), "items": []},
            mixing,
            evaluation(material, say),
        ],
        "map": points,
    }


def _map_words(material: Material, projection: str) -> str:
    total, shown = material.graph.num_nodes, len(material.shown)
    nodes = f"{total:,} nodes" if not material.sampled else f"A seeded sample of {shown:,} of {total:,} nodes"
    among = " among those shown" if material.sampled else ""
    return (
        f"{nodes}, placed by {_PROJECTIONS[projection]}. Click a node or search for its id: "
        f"its ten nearest by embedding{among} are listed."
    )
