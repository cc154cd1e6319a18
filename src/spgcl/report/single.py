"""The page of one run."""

from collections.abc import Callable

from spgcl.evaluation.reliability import split_half
from spgcl.report.charts import Item
from spgcl.report.curves import training
from spgcl.report.homophily import homophily
from spgcl.report.material import Material
from spgcl.report.points import all_columns, map_data, run_columns, view_data
from spgcl.report.projected import Projection, plane_of_run
from spgcl.report.reliability import without_labels
from spgcl.report.scores import evaluation, first_split
from spgcl.report.summary import summary
from spgcl.report.verdict import verdict, without_training

_PROJECTIONS = {"umap": "UMAP by cosine distance", "pca": "the first two principal components"}


def describe_run(material: Material, *, say: Callable[[str], None], projection: Projection = "auto") -> Item:
    """The page of a run as plain data; `say` is called with what is being done, in a few words."""
    run, scored = material.run, material.splits is not None
    say("computing the map")
    plane = plane_of_run(material, projection)
    if not run.findings:
        say("comparing halves of the graph")
    found = run.findings or split_half(material.graph, device=material.device)
    rows = without_training(material, say) if scored else {}
    say("predicting the first split")
    predicted = first_split(material) if scored else None
    columns = all_columns(material, run_columns(material, predicted))
    return {
        "title": f"{run.method} on {run.dataset}",
        "sections": [
            verdict(material, rows, found["verdict"]),
            {"id": "map", "title": "Map", "text": _map_words(material, plane.projection), "items": []},
            evaluation(material, predicted),
            without_labels(found),
            homophily(material),
            *([training(run)] if run.trains else []),
            summary(material.folder, run, material.graph.notes),
        ],
        "map": map_data(material, columns, [view_data(material, plane)]),
    }


def _map_words(material: Material, projection: str) -> str:
    total, shown = material.graph.num_nodes, len(material.shown)
    nodes = f"{total:,} nodes" if not material.sampled else f"A seeded sample of {shown:,} of {total:,} nodes"
    among = " among those shown" if material.sampled else ""
    return (
        f"{nodes}, placed by {_PROJECTIONS[projection]}. Click a node or search for its id: "
        f"its ten nearest by embedding{among} are listed."
    )
