"""Walks against the exact distributions, computed by hand from the adjacency."""

from itertools import pairwise, product

import numpy as np
import pytest
import torch
from graphs import CPU, seeded
from scipy import stats

from spgcl.graph import Graph
from spgcl.methods.parts import walks
from spgcl.methods.parts.walks import (
    ENDED,
    WalkGraph,
    biased_neighbours,
    expected_visits,
    random_neighbours,
    random_walks,
)

# Two triangles that share an edge, a bridge, a path and a leaf; node 8 is isolated.
EDGES = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (3, 4), (4, 5), (5, 6), (4, 7)]
WEIGHTS = [1.0, 2.5, 0.5, 3.0, 1.0, 0.25, 2.0, 1.0, 4.0]


def make_graph(*, weighted=True, directed=False):
    sources, targets = np.array(EDGES).T
    if directed:
        # Some arcs go both ways, so that walks can turn back; others close triangles in one direction only,
        # against the walk (3, 4, 0) and along with it (3, 4, 5).
        sources, targets = np.r_[sources, targets[:6], 4, 0, 3], np.r_[targets, sources[:6], 0, 3, 5]
    weights = np.r_[WEIGHTS, WEIGHTS[:6], 1.5, 2.0, 0.5] if directed else np.array(WEIGHTS)
    return Graph.from_edges(
        sources,
        targets,
        np.ones((9, 2)),
        weights=weights if weighted else None,
        directed=directed,
    )


def exact(graph, before, current, p, q):
    """The second-order distribution over all nodes (Section 3.2.2 of the node2vec paper)."""
    matrix = graph.adjacency.toarray().astype(np.float64)
    masses = np.zeros(len(matrix))
    for node in np.flatnonzero(matrix[current]):
        if node == before:
            bias = 1 / p
        elif matrix[before, node]:
            bias = 1.0
        else:
            bias = 1 / q
        masses[node] = bias * matrix[current, node]
    return masses / masses.sum()


def arcs_with_a_next_step(graph):
    matrix = graph.adjacency.toarray()
    return [(u, v) for u, v in zip(*matrix.nonzero(), strict=True) if matrix[v].any()]


def require_distribution(counts, probabilities):
    """A chi-square test of every row at once; impossible nodes are never met."""
    assert not counts[probabilities == 0].any()
    expected = counts.sum(axis=1, keepdims=True) * probabilities
    possible = probabilities > 0
    statistic = ((counts - expected)[possible] ** 2 / expected[possible]).sum()
    freedom = possible.sum() - len(counts)
    assert stats.chi2.sf(statistic, freedom) > 1e-3


SHAPES = list(product([True, False], [True, False]))


@pytest.mark.parametrize(("p", "q"), [(1, 1), (0.25, 4), (4, 0.25), (0.05, 0.5), (3, 2), (200, 1), (2, 300)])
@pytest.mark.parametrize(("weighted", "directed"), SHAPES)
def test_biased_steps_have_the_exact_second_order_distribution(weighted, directed, p, q):
    graph = make_graph(weighted=weighted, directed=directed)
    arcs = arcs_with_a_next_step(graph)
    draws = 4000
    before, current = torch.tensor(arcs).repeat_interleave(draws, dim=0).T
    chosen = biased_neighbours(WalkGraph.of(graph, CPU), before, current, p, q, seeded())
    counts = np.stack([np.bincount(row, minlength=9) for row in chosen.view(len(arcs), draws).numpy()])
    require_distribution(counts, np.stack([exact(graph, u, v, p, q) for u, v in arcs]))


@pytest.mark.parametrize(("weighted", "directed"), SHAPES)
def test_listing_all_neighbours_gives_the_same_distribution(weighted, directed, monkeypatch):
    monkeypatch.setattr(walks, "PROPOSALS", 0)
    test_biased_steps_have_the_exact_second_order_distribution(weighted, directed, 0.3, 3)


@pytest.mark.parametrize("directed", [False, True])
def test_whole_walks_keep_to_the_second_order_distribution(directed):
    graph, p, q = make_graph(directed=directed), 0.5, 2.0
    starts = torch.arange(8).repeat(2000)
    found = random_walks(WalkGraph.of(graph, CPU), starts, 6, seeded(), p=p, q=q).numpy()
    arcs = arcs_with_a_next_step(graph)
    counts = np.zeros((len(arcs), 9))
    for step in range(2, 6):
        for number, (u, v) in enumerate(arcs):
            steps = found[(found[:, step - 2] == u) & (found[:, step - 1] == v), step]
            counts[number] += np.bincount(steps, minlength=9)
    require_distribution(counts, np.stack([exact(graph, u, v, p, q) for u, v in arcs]))


@pytest.mark.parametrize("weighted", [True, False])
def test_steps_without_memory_go_by_edge_weight(weighted):
    graph = make_graph(weighted=weighted)
    draws = 4000
    nodes = torch.arange(8).repeat_interleave(draws)
    chosen = random_neighbours(WalkGraph.of(graph, CPU), nodes, seeded()).view(8, draws).numpy()
    matrix = graph.adjacency.toarray()[:8].astype(np.float64)
    counts = np.stack([np.bincount(row, minlength=9) for row in chosen])
    require_distribution(counts, matrix / matrix.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("heavy", [1e16, 1e30, 1e-30])
@pytest.mark.parametrize("p", [1.0, 0.5])
def test_a_weight_elsewhere_changes_no_step(heavy, p):
    weights = np.array([heavy, 1, 1, 1, 1, 1, 2])
    graph = Graph.from_edges([0, *[2] * 6], [1, *range(3, 9)], np.ones((10, 1), np.float32), weights=weights)
    starts = torch.full((4000,), 2)
    found = random_walks(WalkGraph.of(graph, CPU), starts, 4, seeded(), p=p)
    counts = np.stack([np.bincount(found[:, 1], minlength=10), np.bincount(found[:, 3], minlength=10)])
    fractions = np.array([0, 0, 0, 1, 1, 1, 1, 1, 2, 0]) / 7
    require_distribution(counts[:1], fractions[None])
    assert (counts[1, :3] == 0).all() and counts[1].sum() == 4000


@pytest.mark.parametrize(("p", "q"), [(1.0, 1.0), (0.5, 2.0)])
def test_walks_follow_edges_and_end_where_there_is_no_way_on(p, q):
    graph = make_graph(directed=True)
    matrix = graph.adjacency.toarray()
    starts = torch.arange(9).repeat(50)
    found = random_walks(WalkGraph.of(graph, CPU), starts, 7, seeded(), p=p, q=q)
    assert found.shape == (450, 7) and torch.equal(found[:, 0], starts)
    for walk in found.tolist():
        for here, there in pairwise(walk):
            if there == ENDED:
                assert here == ENDED or not matrix[here].any()
            else:
                assert matrix[here, there]
    assert (found[starts == 8, 1:] == ENDED).all() and (found != ENDED).sum() > 450


def test_the_seed_decides_the_walks():
    graph, starts = WalkGraph.of(make_graph(), CPU), torch.arange(8)
    first, again, other = (random_walks(graph, starts, 9, seeded(seed)) for seed in (1, 1, 2))
    assert torch.equal(first, again) and not torch.equal(first, other)


@pytest.mark.parametrize(("weighted", "directed"), SHAPES)
def test_expected_visits_are_those_of_a_walk_from_every_node(weighted, directed):
    graph = make_graph(weighted=weighted, directed=directed)
    matrix = graph.adjacency.toarray().astype(np.float64)
    expected = np.zeros(9)
    for start in range(9):
        probabilities = np.eye(9)[start]
        for _ in range(5):
            expected += probabilities
            moved = np.zeros(9)
            for here, there in product(range(9), range(9)):
                if matrix[here, there]:
                    moved[there] += probabilities[here] * matrix[here, there] / matrix[here].sum()
            probabilities = moved
    np.testing.assert_allclose(expected_visits(graph, 5), expected)


@pytest.mark.parametrize(("weighted", "directed"), SHAPES)
@pytest.mark.parametrize("proposals", [0, walks.PROPOSALS])
def test_the_graph_is_left_as_it_was(weighted, directed, proposals, monkeypatch):
    monkeypatch.setattr(walks, "PROPOSALS", proposals)
    graph = make_graph(weighted=weighted, directed=directed)
    paths, starts = WalkGraph.of(graph, CPU), torch.arange(9)
    arrays = [graph.rows, graph.columns, graph.features]
    tensors = [starts, paths.rows, paths.columns, paths.keys]
    if weighted:
        arrays, tensors = [*arrays, graph.weights], [*tensors, paths.sums]
    parts = [*arrays, *(tensor.numpy() for tensor in tensors)]
    before = [part.copy() for part in parts]
    random_walks(paths, starts, 5, seeded(), p=0.5, q=2.0)
    expected_visits(graph, 5)
    np.testing.assert_equal(parts, before)
