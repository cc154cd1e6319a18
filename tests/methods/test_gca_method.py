from functools import partial

import graphs
import made_methods
import numpy as np
import pytest
import torch
from contrast_oracle import RATES, assert_step_is_objective
from graphs import CPU, seeded
from made_methods import in_double
from scipy import sparse

from spgcl.engine.tensors import GraphTensors
from spgcl.graph import Graph
from spgcl.methods.gca import (
    CENTRALITIES,
    GCA,
    column_factors,
    degree_centrality,
    edge_factors,
    eigenvector_centrality,
    pagerank_centrality,
)

make_graph = partial(graphs.make_graph, 40, 10, num_edges=80)
fresh = partial(made_methods.fresh, GCA)
each_centrality = pytest.mark.parametrize("centrality", CENTRALITIES)


def ring(num_nodes, features=None):
    ends = np.arange(num_nodes)
    features = np.ones((num_nodes, 2)) if features is None else features
    return Graph.from_edges(ends, (ends + 1) % num_nodes, features)


def star(num_leaves):
    leaves = np.arange(1, num_leaves + 1)
    return Graph.from_edges(np.zeros(num_leaves, int), leaves, np.eye(num_leaves + 1))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("directed", [False, True])
def test_a_degree_is_what_points_to_a_node(directed, weighted):
    graph = make_graph(directed=directed, weighted=weighted)
    expected = np.zeros(40)
    for source in range(40):
        for entry in range(graph.rows[source], graph.rows[source + 1]):
            expected[graph.columns[entry]] += graph.weights[entry] if weighted else 1
    np.testing.assert_allclose(degree_centrality(graph), expected, rtol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_eigenvector_centrality_is_the_leading_eigenvector(weighted):
    graph = make_graph(weighted=weighted)
    values, vectors = np.linalg.eigh(graph.adjacency.toarray().astype(np.float64))
    found = eigenvector_centrality(graph)
    np.testing.assert_allclose(found, np.abs(vectors[:, -1]), atol=1e-6)
    assert (found >= 0).all() and values[-1] > values[-2]


def test_eigenvector_centrality_settles_on_a_bipartite_graph():
    """A star's eigenvalues come in a pair of opposite sign; the hub weighs as much as all leaves."""
    found = eigenvector_centrality(star(9))
    np.testing.assert_allclose(found, [0.5**0.5] + [0.5**0.5 / 3] * 9, atol=1e-8)


def test_eigenvector_centrality_follows_directed_edges():
    """A cycle whose nodes also point to a node outside: that one gathers, and gives nothing back."""
    graph = Graph.from_edges(np.array([0, 1, 2, 0, 1]), np.array([1, 2, 0, 3, 3]), np.eye(4), directed=True)
    found = eigenvector_centrality(graph)
    np.testing.assert_allclose(found / found[0], [1, 1, 1, 2], atol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("directed", [False, True])
def test_pagerank_solves_its_equation(directed, weighted):
    graph = make_graph(directed=directed, weighted=weighted)
    dense = graph.adjacency.toarray().astype(np.float64)
    sums = dense.sum(1)
    assert (sums == 0).any()
    dense[sums == 0] = 1
    walk = dense / dense.sum(1, keepdims=True)
    expected = np.linalg.solve(np.eye(40) - 0.85 * walk.T, np.full(40, 0.15))
    found = pagerank_centrality(graph)
    np.testing.assert_allclose(found, expected, atol=1e-8)
    assert found.mean() == pytest.approx(1)


def naive_factors(central):
    scores = [np.log(1 + value) for value in central]
    top, mean = max(scores), sum(scores) / len(scores)
    return [(top - score) / (top - mean) for score in scores]


@each_centrality
@pytest.mark.parametrize("directed", [False, True])
def test_edges_are_ranked_by_their_ends(directed, centrality):
    graph = make_graph(directed=directed)
    scores = CENTRALITIES[centrality](graph)
    tensors = GraphTensors.of(graph, CPU)
    found = edge_factors(tensors, torch.from_numpy(scores))
    sources, targets = tensors.adjacency.row_of_entry.tolist(), tensors.adjacency.columns.tolist()
    central, entries = [], []
    for entry, (source, target) in enumerate(zip(sources, targets, strict=True)):
        if source != target:
            central.append(scores[target] if directed else (scores[source] + scores[target]) / 2)
            entries.append(entry)
    np.testing.assert_allclose(found[entries], naive_factors(central), rtol=1e-9, atol=1e-12)
    assert found[entries].mean().item() == pytest.approx(1) and found.min() == 0


@each_centrality
@pytest.mark.parametrize("as_sparse", [False, True])
def test_columns_are_ranked_by_the_nodes_that_have_them(as_sparse, centrality):
    graph = make_graph()
    if as_sparse:
        graph = graph.with_features(sparse.csr_array(graph.features * (graph.features > 1)))
    scores = CENTRALITIES[centrality](graph)
    dense = graph.features.toarray() if as_sparse else graph.features
    central = [
        sum(abs(float(dense[node, column])) * scores[node] for node in range(40)) for column in range(10)
    ]
    found = column_factors(graph, scores)
    np.testing.assert_allclose(found, naive_factors(central), rtol=1e-5, atol=1e-6)


@each_centrality
def test_where_all_are_alike_nothing_is_spared(centrality):
    graph = ring(7)
    prepared = fresh(graph, centrality=centrality)[1]
    adjacency = prepared.graph.adjacency
    edges = adjacency.row_of_entry != adjacency.columns
    assert torch.equal(prepared.edges[edges], torch.ones(14))
    assert torch.equal(prepared.columns, torch.ones(2))


def test_rates_follow_the_ranks_up_to_the_cut_off():
    """Edges and columns of a view, counted over many draws."""
    graph = make_graph()
    graph = graph.with_features(np.abs(graph.features) * np.logspace(-2, 1, 10, dtype=np.float32))
    method, prepared = fresh(graph, cut_off=0.5)
    adjacency = prepared.graph.adjacency
    key_of = adjacency.row_of_entry.long() * 40 + adjacency.columns
    kept, unmasked = torch.zeros(len(key_of)), torch.zeros(10)
    for seed in range(600):
        view = method.view(prepared, 0.4, 0.3, seeded(seed))
        keys = view.adjacency.row_of_entry.long() * 40 + view.adjacency.columns
        kept += torch.isin(key_of, keys)
        unmasked += (view.features != 0).any(dim=0)
    edges = adjacency.row_of_entry != adjacency.columns
    expected = (prepared.edges * 0.4).clamp(max=0.5)
    assert (expected[edges] == 0.5).any() and (expected[edges] < 0.1).any()
    slack = 5 * (0.25 / 600) ** 0.5
    torch.testing.assert_close(1 - kept[edges] / 600, expected[edges], rtol=0, atol=slack)
    expected = (prepared.columns * 0.3).clamp(max=0.5)
    assert (expected == 0.5).any() and (expected < 0.1).any()
    torch.testing.assert_close(1 - unmasked / 600, expected, rtol=0, atol=slack)


@each_centrality
def test_a_step_is_the_objective_over_two_adaptive_views(centrality):
    settings = {"centrality": centrality, "cut_off": 0.6, "temperature": 0.3}
    method, prepared = in_double(*fresh(make_graph(), hidden=6, projection=5, **settings, **RATES))
    factors = prepared.edges, prepared.columns
    assert_step_is_objective(
        method, prepared, lambda *rates: [(f * r).clamp(max=0.6) for f, r in zip(factors, rates, strict=True)]
    )
