"""The figures of a loaded benchmark compared with the paper's table 8."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spgcl.datasets.dataset import Dataset
from spgcl.datasets.entries import Entry, entries
from spgcl.datasets.loading import load, load_directed
from spgcl.datasets.storage import is_on_disk
from spgcl.graph import Graph

Measure = Callable[[Graph, NDArray[np.int64]], Mapping[str, float]]

FIGURES = ("nodes", "edges", "classes", "features", "edge_homophily", "node_homophily", "average_degree")
_DECIMALS = {"edge_homophily": 3, "node_homophily": 3, "average_degree": 2}


@dataclass(frozen=True)
class Figure:
    """One figure: as measured, as printed, as measured in the paper's way, and why the first two differ.

    Attributes:
        counted_as_paper: The figure as counted by the paper, if it is known and differs.
    """

    loaded: float
    paper: float | None = None
    counted_as_paper: float | None = None
    why: str = ""


def compare(name: str, measure: Measure) -> dict[str, Figure]:
    """Every figure of a data set by name, with the reason if the paper has another value."""
    dataset = load(name)
    loaded = measure(dataset.graph, dataset.labels)
    if name not in entries():
        return {figure: Figure(loaded[figure]) for figure in FIGURES}
    known = entries()[name]
    counted = _counted_as_paper(known, dataset, measure)
    return {figure: _figure(known, figure, loaded[figure], counted.get(figure)) for figure in FIGURES}


def incoming_homophily(graph: Graph, labels: NDArray[np.int64]) -> float:
    """Mean over ALL nodes of the fraction of incoming edges from the node's own class, 0 if there are none.

    The paper's node homophily was computed in this way: over the edges as listed, with zeros for isolated
    nodes.
    """
    same = np.repeat(labels, graph.degrees) == labels[graph.columns]
    incoming = np.bincount(graph.columns, minlength=graph.num_nodes)
    equal = np.bincount(graph.columns, weights=same, minlength=graph.num_nodes)
    return float((equal / np.maximum(incoming, 1)).mean())


def _counted_as_paper(known: Entry, dataset: Dataset, measure: Measure) -> dict[str, float]:
    if known.paper_counts is None:
        return {}
    if known.paper_counts == "every node":
        return {"node_homophily": incoming_homophily(dataset.graph, dataset.labels)}
    if not is_on_disk(known, known.directed or known.files):
        return {}
    listed = load_directed(known.name)
    return {
        "edge_homophily": measure(listed.graph, listed.labels)["edge_homophily"],
        "node_homophily": incoming_homophily(listed.graph, listed.labels),
    }


def _figure(known: Entry, figure: str, loaded: float, counted: float | None) -> Figure:
    paper = known.paper.get(figure)
    if paper is None or agrees(figure, loaded, paper):
        return Figure(loaded, paper)
    return Figure(loaded, paper, counted, known.differs.get(figure, "not explained"))


def agrees(figure: str, measured: float, printed: float) -> bool:
    """Whether a measured figure rounds to the printed one."""
    decimals = _DECIMALS.get(figure, 0)
    # Slightly more than half a unit of the last digit: the paper rounds some halves down.
    return abs(measured - printed) <= 0.55 * 10**-decimals if decimals else measured == printed
