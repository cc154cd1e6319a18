"""Reads a graph for a trained run as the run's own graph was read; refuses one that does not fit."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from spgcl.errors import InputError, note
from spgcl.io.draft import NO_WEIGHTS
from spgcl.io.opening import suffix_of
from spgcl.io.read import EDGE_LISTS
from spgcl.runs.options import GraphOptions
from spgcl.runs.sources import Loaded, is_dataset, resolve_graph
from spgcl.training.fitting import as_learned


def resolve_alike(graph: str, options: GraphOptions, run: Path, recorded: dict[str, Any]) -> Loaded:
    """The graph of GRAPH; direction, weights and structural features as for the run unless given."""
    _require_agreement(graph, options, run, recorded)
    adopted = {} if is_dataset(graph) else _adopted(graph, options, recorded)
    words = ", ".join(
        f"--{name}" if value is True else f"--{name} {value}" for name, value in adopted.items()
    )
    if words:
        note(f"{words} as in {run}")
    try:
        loaded = resolve_graph(graph, replace(options, **adopted), recorded.get("encoding"))
    except InputError as error:
        raise InputError(f"{error} ({words} as in {run})" if words else str(error)) from None
    try:
        matched = as_learned(
            loaded.graph,
            digest=recorded["digest"],
            directed=recorded["directed"],
            num_features=recorded["num_features"],
            # Runs of earlier versions did not record names.
            feature_names=recorded.get("feature_names", ()),
        )
    except InputError as error:
        raise InputError(f"{graph} does not fit {run}: {error}") from None
    weighted = matched.weights is not None
    if recorded.get("weighted", weighted) != weighted:
        note(f"{graph} has {'edge' if weighted else 'no edge'} weights, unlike the graph of {run}")
    return replace(loaded, graph=matched)


def _require_agreement(graph: str, options: GraphOptions, run: Path, recorded: dict[str, Any]) -> None:
    """Refuse options under which embeddings would mean nothing."""
    structural = recorded["options"].get("structural")
    if options.directed and not recorded["directed"]:
        raise InputError(f"{run} was trained on an undirected graph; leave --directed out")
    if options.structural not in (None, structural):
        learned = f"--structural {structural}" if structural else "features that were given"
        raise InputError(f"{run} was trained on {learned}; leave --structural {options.structural} out")
    if options.label:
        raise InputError(f"embed reads no labels; leave --label {options.label} out")
    if structural and options.features:
        raise InputError(f"{run} was trained on --structural {structural}; leave --features out")
    if structural and is_dataset(graph):
        raise InputError(
            f"{run} was trained on --structural {structural}, but {graph} brings features of its own; "
            "fit on it instead"
        )


def _adopted(graph: str, options: GraphOptions, recorded: dict[str, Any]) -> dict[str, Any]:
    """Options of the run that apply to this graph too, as nothing else is given."""
    own = {**recorded["options"], "directed": recorded["directed"]}
    has_columns = suffix_of(Path(graph)) in (*EDGE_LISTS, ".graphml")
    names = ["directed", "structural"]
    if options.features and own.get("features"):
        names.append("columns")
    if has_columns or own.get("weight") == NO_WEIGHTS:
        names.append("weight")
    if has_columns:
        names.append("bipartite")
    return {name: own[name] for name in names if own.get(name) and not getattr(options, name)}
