from functools import cache, partial

import numpy as np
import pytest

from spgcl.datasets.comparison import agrees, compare, incoming_homophily
from spgcl.datasets.entries import entries
from spgcl.datasets.storage import is_on_disk
from spgcl.evaluation.statistics import table_figures
from spgcl.graph import Graph

compared = cache(partial(compare, measure=table_figures))
ON_PAPER = [name for name, known in entries().items() if known.paper]


@pytest.mark.parametrize("name", ON_PAPER)
def test_every_figure_agrees_or_is_explained(benchmark_folder, name):
    known = entries()[name]
    if not is_on_disk(known, known.files):
        pytest.skip(f"{name} is not among the benchmark files")
    for key, figure in compared(name).items():
        differs = not agrees(key, figure.loaded, figure.paper)
        assert bool(figure.why) == differs and figure.why != "not explained"
        if figure.counted_as_paper is not None:
            assert agrees(key, figure.counted_as_paper, figure.paper)


@pytest.mark.parametrize(
    "name, paper", [("chameleon", 0.103), ("squirrel", 0.088), ("actor", 0.154), ("twitch-de", 0.529)]
)
def test_the_papers_node_homophily_is_that_of_the_directed_list(benchmark_folder, name, paper):
    figure = compared(name)["node_homophily"]
    assert figure.paper == paper and figure.counted_as_paper == pytest.approx(paper, abs=0.0005)
    assert "directed" in figure.why


def test_incoming_homophily_on_a_graph_small_enough_to_count():
    # 0 -> 1, 2 -> 1, 1 -> 2; labels a a b: node 0 gets nothing (0), node 1 a half, node 2 nothing of its own.
    graph = Graph.from_edges(np.array([0, 2, 1]), np.array([1, 1, 2]), np.ones((3, 1)), directed=True)
    assert incoming_homophily(graph, np.array([0, 0, 1])) == pytest.approx((0 + 1 / 2 + 0) / 3)


def test_a_graph_outside_the_paper_has_figures_and_nothing_to_compare():
    figures = compare("csbm-homophilic", table_figures)
    assert [figure.paper for figure in figures.values()] == [None] * 7
    assert figures["nodes"].loaded == 1500
