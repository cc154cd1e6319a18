"""What a graph is, in memory or on disk."""

from typing import Any

from spgcl.errors import InputError
from spgcl.evaluation import split_half
from spgcl.evaluation.statistics import describe
from spgcl.runs.sources import Loaded
from spgcl.scale.describe import describe_store
from spgcl.scale.sample import sampled_graph
from spgcl.scale.store import Store


def inspected(loaded: Loaded) -> dict[str, Any]:
    """Size, degrees, where the signal is, and with labels homophily."""
    graph = loaded.graph
    if isinstance(graph, Store):
        if loaded.labels is not None:
            raise InputError(f"{loaded.source} is larger than --memory; leave --labels out or raise it")
        described, part = describe_store(graph), sampled_graph(graph)
    else:
        described, part = describe(graph, loaded.labels), graph
    record = {
        "name": loaded.name,
        **described,
        "notes": list(graph.notes),
        "without_labels": split_half(part),
    }
    if "class_counts" in record and loaded.class_names:
        record["class_names"] = list(loaded.class_names)
    return record
