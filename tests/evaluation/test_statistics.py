from dataclasses import replace

import numpy as np
import pytest
from graphs import make_graph
from scipy import sparse

from spgcl.errors import InputError
from spgcl.evaluation import class_mixing, describe, edge_homophily, node_homophily, transformed_homophily
from spgcl.graph import Graph
from spgcl.graph.propagate import smooth


def make_labelled(*, directed=False, features=None):
    graph = make_graph(60, 5, num_edges=150, directed=directed)
    if features is not None:
        graph = replace(graph, features=features.astype(np.float32))
    return graph, np.random.default_rng(1).integers(0, 3, 60)


def neighbours_of(graph, node):
    return graph.columns[graph.rows[node] : graph.rows[node + 1]].tolist()


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("unlabelled", [0, 10])
def test_homophilies_equal_naive_loops(directed, unlabelled):
    graph, labels = make_labelled(directed=directed)
    labels[:unlabelled] = -1
    fractions, edges = [], []
    for node in range(60):
        known = [other for other in neighbours_of(graph, node) if labels[other] >= 0 and labels[node] >= 0]
        same = [labels[other] == labels[node] for other in known]
        edges += same
        fractions += [np.mean(same)] if same else []
    assert edge_homophily(graph, labels) == pytest.approx(np.mean(edges))
    assert node_homophily(graph, labels) == pytest.approx(np.mean(fractions))


def test_class_mixing_says_where_the_edges_of_a_class_lead():
    graph, labels = make_labelled()
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
    # Sparse products without cost are always preferred, so that both computations are tested.
    monkeypatch.setattr("spgcl.evaluation.transformed._SPARSE_COST", cost)
    monkeypatch.setattr("spgcl.evaluation.transformed._BLOCK_BYTES", 4 * 60 * 7)
    generator = np.random.default_rng(2)
    features = generator.normal(size=(60, 30)) * (generator.random((60, 30)) < 0.3)
    graph, labels = make_labelled(features=form(features))
    found = transformed_homophily(graph, labels, positives=4, hops=hops)
    assert found.homophily == pytest.approx(naive_transformed(graph, labels, 4, hops))
    assert (found.anchors, found.sampled) == (60, False)


def test_a_node_of_zeros_is_no_anchor():
    features = np.random.default_rng(0).random((60, 5))
    features[59] = 0
    graph, labels = make_labelled(features=features)
    assert graph.degrees[59] == 0
    assert transformed_homophily(graph, labels).anchors == 59


def test_large_graphs_are_sampled_and_say_so(monkeypatch):
    monkeypatch.setattr("spgcl.evaluation.transformed._EXACT_NODES", 50)
    graph, labels = make_labelled()
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
    arrays = [graph.rows, graph.columns, graph.weights, graph.node_ids]
    arrays += [features.data, features.indices, features.indptr]
    expected = {
        "nodes": 6,
        "edges": 3,
        "features": 6,
        "feature_density": pytest.approx(1 / 6),
        "degree": {"min": 0, "median": 1.0, "mean": 1.0, "max": 2},
        "isolated_nodes": 1,
        "connected_components": 3,
        "directed": False,
        "weighted": True,
        "classes": 2,
        "class_counts": [3, 3],
        "edge_homophily": pytest.approx(2 / 3),
        "memory_bytes": sum(array.nbytes for array in arrays),
    }
    assert {name: record[name] for name in expected} == expected


def test_a_node_with_incoming_arcs_only_is_not_isolated():
    graph = Graph.from_edges(np.array([0]), np.array([1]), np.eye(3), directed=True)
    record = describe(graph)
    assert record["isolated_nodes"] == 1
    assert record["connected_components"] == 2
    assert "classes" not in record


@pytest.mark.parametrize(
    ("labels", "named"),
    [
        (np.zeros(59, dtype=int), "59 labels .* 60"),
        (np.zeros(60), "float64"),
        (np.full(60, -1), "no node has a label"),
    ],
)
def test_labels_that_do_not_fit_are_refused(labels, named):
    with pytest.raises(InputError, match=named):
        edge_homophily(make_labelled()[0], labels)


@pytest.mark.parametrize("positives", [0, 60])
def test_impossible_positives_are_refused(positives):
    graph, labels = make_labelled()
    with pytest.raises(InputError, match=f"{positives}.* 1 to 59"):
        transformed_homophily(graph, labels, positives=positives)
