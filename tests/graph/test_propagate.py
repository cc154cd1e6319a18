import numpy as np
import pytest
from graphs import make_graph, refusing
from scipy import sparse

from spgcl.graph.propagate import normalised_adjacency, smooth


def naive_normalised(graph):
    size = graph.num_nodes
    dense = graph.adjacency.toarray().astype(np.float64) + np.eye(size)
    normalised = np.zeros_like(dense)
    for row in range(size):
        for column in range(size):
            if graph.directed:
                normalised[row, column] = dense[row, column] / dense[row].sum()
            else:
                normalised[row, column] = dense[row, column] / np.sqrt(dense[row].sum() * dense[column].sum())
    return normalised


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("directed", [True, False])
def test_matches_the_naive_formula(directed, weighted):
    graph = make_graph(directed=directed, weighted=weighted)
    matrix = normalised_adjacency(graph)
    assert matrix.format == "csr"
    assert matrix.dtype == np.float32
    np.testing.assert_allclose(matrix.toarray(), naive_normalised(graph), rtol=1e-5)


def test_an_isolated_node_keeps_its_features():
    graph = make_graph()
    assert graph.degrees[-1] == 0
    assert normalised_adjacency(graph)[[-1]].toarray()[0, -1] == 1


def test_directed_rows_sum_to_one():
    matrix = normalised_adjacency(make_graph(directed=True, weighted=True))
    np.testing.assert_allclose(matrix.sum(axis=1), 1, rtol=1e-5)


def test_smoothing_is_the_power_of_the_matrix():
    graph = make_graph(weighted=True)
    expected = np.linalg.matrix_power(naive_normalised(graph), 3) @ graph.features
    np.testing.assert_allclose(smooth(graph, 3), expected, atol=1e-5)


def test_zero_hops_return_the_features_and_negative_ones_are_refused():
    graph = make_graph()
    assert smooth(graph, 0) is graph.features
    with refusing("hops is -1"):
        smooth(graph, -1)


def sparse_features(num_nodes, width, density):
    generator = np.random.default_rng(1)
    values = generator.random((num_nodes, width))
    return sparse.csr_array(values * (generator.random((num_nodes, width)) < density))


def test_sparse_features_stay_sparse_while_that_is_smaller():
    graph = make_graph(2000, num_edges=3000).with_features(sparse_features(2000, 300, 0.01))
    smoothed = smooth(graph, 1)
    assert sparse.issparse(smoothed)
    expected = normalised_adjacency(graph).toarray() @ graph.features.toarray()
    np.testing.assert_allclose(smoothed.toarray(), expected, atol=1e-5)


def test_sparse_features_become_dense_once_they_fill_up(monkeypatch):
    monkeypatch.setattr("spgcl.graph.propagate._BLOCK_BYTES", 8 * 60 * 7)
    graph = make_graph(100, num_edges=1000).with_features(sparse_features(100, 60, 0.1))
    smoothed = smooth(graph, 2)
    assert isinstance(smoothed, np.ndarray)
    assert smoothed.dtype == np.float32
    power = np.linalg.matrix_power(normalised_adjacency(graph).toarray(), 2)
    np.testing.assert_allclose(smoothed, power @ graph.features.toarray(), atol=1e-5)
