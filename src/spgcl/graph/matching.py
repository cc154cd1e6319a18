"""Whether a trained model applies to another graph: its direction, and its features by name."""

from collections.abc import Sequence
from dataclasses import replace

from spgcl.errors import InputError
from spgcl.graph import Graph
from spgcl.graph.checks import checked_features
from spgcl.graph.structural import spectral_names

_MOST_LISTED = 3


def match_features(graph: Graph, names: Sequence[str]) -> Graph:
    """The graph with its feature columns in the order of `names`, and a note if the order changed.

    If either side has no names, nothing is compared. Missing and additional columns are an error.
    """
    learned, given = tuple(names), graph.feature_names
    if not learned or not given or learned == given:
        return graph
    missing = [name for name in learned if name not in given]
    added = [name for name in given if name not in learned]
    if missing or added or len(set(given)) < len(given) or len(given) != len(learned):
        raise InputError(
            f"the feature columns are not those that were learned from: {_difference(missing, added)}; "
            "give the same columns under the same names"
        )
    index = {name: column for column, name in enumerate(given)}
    note = "the feature columns are put in the order that was learned from, by their names"
    return replace(
        graph,
        features=checked_features(graph.features[:, [index[name] for name in learned]]),
        feature_names=learned,
        notes=(*graph.notes, note),
    )


def _difference(missing: list[str], added: list[str]) -> str:
    parts = [f"{_listed(names)} {what}" for names, what in ((missing, "missing"), (added, "new")) if names]
    return ", ".join(parts) or "a name appears twice"


def _listed(names: list[str]) -> str:
    more = len(names) - _MOST_LISTED
    return ", ".join(map(repr, names[:_MOST_LISTED])) + (f" and {more} more" if more > 0 else "")


def require_same_direction(graph: Graph, *, directed: bool) -> None:
    """Refuse a directed graph for a model of undirected ones, and the reverse."""
    if graph.directed != directed:
        kinds = {True: "directed", False: "undirected"}
        fix = "read it with" if directed else "leave out"
        raise InputError(
            f"the graph is {kinds[graph.directed]}, the one learned from was {kinds[directed]}; "
            f"{fix} directed=True (--directed)"
        )


def require_comparable(names: Sequence[str], *, same_graph: bool) -> None:
    """Refuse another graph if the features are eigenvectors, which have no meaning across graphs."""
    if names and not same_graph and tuple(names) == spectral_names(len(names)):
        raise InputError(
            "spectral features are eigenvectors of the graph that was learned from and do not transfer to "
            "another graph; fit on this graph, or use --structural degree"
        )
