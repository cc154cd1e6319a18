import os
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from spgcl.datasets import load
from spgcl.errors import InputError
from spgcl.evaluation import class_mixing, describe, edge_homophily, node_homophily, transformed_homophily
from spgcl.graph import Graph
from spgcl.graph.propagate import smooth


def make_graph(*, directed=False, features=None):
    generator = np.random.default_rng(0)
    sources, targets = generator.integers(0, 59, (2, 150))
    features = generator.normal(size=(60, 5)) if features is None else features
    graph = Graph.from_edges(sources, targets, features, directed=directed)
    return graph, generator.integers(0, 3, 60)


def neighbours_of(graph, node):
    return graph.columns[graph.rows[node] : graph.rows[node + 1]].tolist()


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("unlabelled", [0, 10])
def test_homophilies_equal_naive_loops(directed, unlabelled):
    graph, labels = make_graph(directed=directed)
    labels[:unlabelled] = -1
    shares, edges = [], []
    for node in range(60):
        known = [other for other in neighbours_of(graph, node) if labels[other] >= 0 and labels[node] >= 0]
        same = [labels[other] == labels[node] for other in known]
        edges += same
        shares += [np.mean(same)] if same else []
    assert edge_homophily(graph, labels) == pytest.approx(np.mean(edges))
    assert node_homophily(graph, labels) == pytest.approx(np.mean(shares))


def test_class_mixing_says_where_the_edges_of_a_class_lead():
    graph, labels = make_graph()
    counts = np.zeros((3, 3))
    for node in range(60):
        for other in neighbours_of(graph, node):
            counts[labels[node], labels[other]] += 1
    np.testing.assert_allclose(class_mixing(graph, labels), counts / counts.sum(axis=1, keepdims=True))


def naive_transformed(graph, labels, positives, hops):
    smoothed = smooth(graph, hops)
    rows = smoothed.toarray() if sparse.issparse(smoothed) else smoothed
    same = []
    for node in range(graph.num_nodes):
        if not rows[node].any():
            continue
        scores = [
            float(rows[node] @ rows[other] / max(np.linalg.norm(rows[other]), 1e-30))
            for other in range(graph.num_nodes)
        ]
        scores[node] = -np.inf
        same += [labels[other] == labels[node] for other in np.argsort(scores)[::-1][:positives]]
    return np.mean(same)


@pytest.mark.parametrize("cost", [0, 40])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("hops", [0, 1, 2])
def test_transformed_homophily_equals_a_naive_loop(hops, form, cost, monkeypatch):
    # At no cost sparse products are always preferred, so both ways to the similarities are walked.
    monkeypatch.setattr("spgcl.evaluation.transformed._SPARSE_COST", cost)
    monkeypatch.setattr("spgcl.evaluation.transformed._BLOCK_BYTES", 4 * 60 * 7)
    generator = np.random.default_rng(2)
    features = generator.normal(size=(60, 30)) * (generator.random((60, 30)) < 0.3)
    graph, labels = make_graph(features=form(features))
    found = transformed_homophily(graph, labels, positives=4, hops=hops)
    assert found.homophily == pytest.approx(naive_transformed(graph, labels, 4, hops))
    assert (found.anchors, found.sampled) == (60, False)


def test_a_node_of_zeros_is_no_anchor():
    features = np.random.default_rng(0).random((60, 5))
    features[59] = 0
    graph, labels = make_graph(features=features)
    assert graph.degrees[59] == 0
    assert transformed_homophily(graph, labels).anchors == 59


def test_large_graphs_are_sampled_and_say_so(monkeypatch):
    monkeypatch.setattr("spgcl.evaluation.transformed._EXACT_NODES", 50)
    graph, labels = make_graph()
    found = transformed_homophily(graph, labels, seed=1)
    assert (found.anchors, found.sampled) == (50**2 // 60, True)
    assert found == transformed_homophily(graph, labels, seed=1)
    exact = naive_transformed(graph, labels, 5, 2)
    assert found.homophily == pytest.approx(exact, abs=0.1)


def test_describe_counts_what_is_there():
    # A weighted path 0 - 1 - 2, a pair 3 - 4, and node 5 alone.
    features = sparse.csr_array(np.eye(6, dtype=np.float32))
    graph = Graph.from_edges(
        np.array([0, 1, 3]), np.array([1, 2, 4]), features, weights=np.array([1.0, 2, 3])
    )
    record = describe(graph, np.array([0, 0, 1, 1, 1, 0]))
    assert record["nodes"] == 6
    assert record["edges"] == 3
    assert record["features"] == 6
    assert record["feature_density"] == pytest.approx(1 / 6)
    assert record["degree"] == {"min": 0, "median": 1.0, "mean": 1.0, "max": 2}
    assert record["isolated_nodes"] == 1
    assert record["connected_components"] == 3
    assert (record["directed"], record["weighted"]) == (False, True)
    assert record["classes"] == 2
    assert record["class_counts"] == [3, 3]
    assert record["edge_homophily"] == pytest.approx(2 / 3)
    assert record["memory_bytes"] == sum(
        part.nbytes
        for part in (
            graph.rows,
            graph.columns,
            graph.weights,
            graph.node_ids,
            features.data,
            features.indices,
            features.indptr,
        )
    )


def test_a_node_with_incoming_arcs_only_is_not_isolated():
    graph = Graph.from_edges(np.array([0]), np.array([1]), np.eye(3), directed=True)
    record = describe(graph)
    assert record["isolated_nodes"] == 1
    assert record["connected_components"] == 2
    assert "classes" not in record


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.zeros(59, dtype=int), "59 labels .* 60"),
        (np.zeros(60), "float64"),
        (np.full(60, -1), "no node has a label"),
    ],
)
def test_labels_that_do_not_fit_are_refused(labels, message):
    with pytest.raises(InputError, match=message):
        edge_homophily(make_graph()[0], labels)


@pytest.mark.parametrize("positives", [0, 60])
def test_impossible_positives_are_refused(positives):
    graph, labels = make_graph()
    with pytest.raises(InputError, match="needs 1 to 59"):
        transformed_homophily(graph, labels, positives=positives)


PUBLISHED = {
    "cora": (2708, 5278, 0.810, 0.825),
    "citeseer": (3327, 4552, 0.736, 0.717),
    "amazon-photo": (7650, 119081, 0.827, 0.849),
    "chameleon-filtered": (890, 8854, 0.236, 0.244),
    "minesweeper": (10000, 39402, 0.683, 0.683),
    "twitch-de": (9498, 153138, 0.632, 0.596),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_statistics_of_real_graphs_are_those_measured_from_their_files(name):
    if not Path(os.environ.get("SPGCL_DATA", "absent"), name).is_dir():
        pytest.skip(f"{name} is not in the folder that SPGCL_DATA names")
    dataset = load(name)
    graph = dataset.graph
    found = (
        graph.num_nodes,
        graph.num_edges,
        round(edge_homophily(graph, dataset.labels), 3),
        round(node_homophily(graph, dataset.labels), 3),
    )
    assert found == PUBLISHED[name]
