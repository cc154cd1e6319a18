"""What a graph is, in memory or on disk."""

from dataclasses import replace
from typing import Any

from spgcl.errors import InputError, NoFeaturesError
from spgcl.evaluation import split_half
from spgcl.evaluation.statistics import describe
from spgcl.methods import METHODS
from spgcl.runs.kept import given_in_memory
from spgcl.runs.options import GraphOptions
from spgcl.runs.sources import Loaded, resolve
from spgcl.scale.describe import describe_store
from spgcl.scale.sample import sampled_graph
from spgcl.scale.store import Store


def inspect_graph(
    graph: Any, options: GraphOptions, labels: Any = None, features: Any = None
) -> dict[str, Any]:
    """The same as `inspected` for a graph that is named or given in memory; it needs no features."""

    def loaded(chosen: GraphOptions) -> Loaded:
        given = given_in_memory(graph, chosen, features, labels)
        return given or resolve(str(graph), chosen, labels, on_disk=True)

    try:
        return inspected(loaded(options))
    except NoFeaturesError:
        # Degrees replace features, which most of the description does not read.
        record = inspected(loaded(replace(options, structural="degree")))
    record |= {"features": 0, "feature_density": 0.0}
    record.pop("transformed", None)
    notes = [line for line in record["notes"] if "structural features" not in line]
    need_none = ", ".join(name for name, method in METHODS.items() if not method.reads_features)
    verdict = [
        "Nothing can be said of features: there are none.",
        "Give them (--features FILE), or compute some from the structure (--structural degree). Methods that "
        f"need none: {need_none}.",
    ]
    return {**record, "notes": notes, "without_labels": {"channels": {}, "verdict": verdict}}


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
