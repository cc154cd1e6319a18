"""A graph for a trained run: read as the run's own was, with the same feature columns, or refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from spgcl.errors import InputError, note
from spgcl.graph import Graph
from spgcl.runs.options import GraphOptions
from spgcl.runs.sources import Loaded, is_dataset, resolve_graph


def resolve_alike(graph: str, options: GraphOptions, run: Path, recorded: dict[str, Any]) -> Loaded:
    """The graph of GRAPH; direction, weights and structural features are the run's where none are given.

    Args:
        graph: A data set's name, or a path.
        options: As given for this graph.
        run: The run's folder, for words.
        recorded: What the run's record says of its own graph.
    """
    _require_agreement(graph, options, run, recorded)
    taken = {} if is_dataset(graph) else _taken(graph, options, recorded)
    words = ", ".join(f"--{name}" if value is True else f"--{name} {value}" for name, value in taken.items())
    if words:
        note(f"{words} as in {run}")
    try:
        loaded = resolve_graph(graph, replace(options, **taken))
    except InputError as error:
        raise InputError(f"{error} ({words} as in {run})" if words else str(error)) from None
    try:
        matched = _matched(loaded.graph, recorded)
    except InputError as error:
        raise InputError(f"{graph} does not fit {run}: {error}") from None
    weighted = matched.weights is not None
    if recorded.get("weighted", weighted) != weighted:
        note(f"{graph} has {'edge' if weighted else 'no edge'} weights, unlike the graph of {run}")
    return replace(loaded, graph=matched)


def _matched(graph: Graph, recorded: dict[str, Any]) -> Graph:
    from spgcl.graph.matching import match_features, require_comparable, require_same_direction

    require_same_direction(graph, directed=recorded["directed"])
    require_comparable(graph.feature_names, same_graph=graph.digest == recorded["digest"])
    # Runs of earlier versions have no names on record.
    return match_features(graph, recorded.get("feature_names", ()))


def _require_agreement(graph: str, options: GraphOptions, run: Path, recorded: dict[str, Any]) -> None:
    """Refuse what can only give vectors that mean nothing."""
    structural = recorded["options"].get("structural")
    if options.directed and not recorded["directed"]:
        raise InputError(f"{run} was trained on an undirected graph; leave --directed out")
    if options.structural not in (None, structural):
        learned = f"--structural {structural}" if structural else "features that were given"
        raise InputError(f"{run} was trained on {learned}; leave --structural {options.structural} out")
    if structural and options.features:
        raise InputError(f"{run} was trained on --structural {structural}; leave --features out")
    if structural and is_dataset(graph):
        raise InputError(
            f"{run} was trained on --structural {structural}, but {graph} brings features of its own; "
            "fit on it instead"
        )


def _taken(graph: str, options: GraphOptions, recorded: dict[str, Any]) -> dict[str, Any]:
    """Options of the run that hold for this graph as well, as nothing else is given."""
    from spgcl.io.draft import NO_WEIGHTS
    from spgcl.io.opening import suffix_of
    from spgcl.io.read import EDGE_LISTS

    own = recorded["options"]
    taken = {}
    if recorded["directed"] and not options.directed:
        taken["directed"] = True
    if own.get("structural") and not options.structural:
        taken["structural"] = own["structural"]
    has_columns = suffix_of(Path(graph)) in (*EDGE_LISTS, ".graphml")
    if own.get("weight") and not options.weight and (has_columns or own["weight"] == NO_WEIGHTS):
        taken["weight"] = own["weight"]
    return taken
