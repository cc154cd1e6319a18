import graphs
import numpy as np
import pytest
from graphs import CPU

from spgcl.methods import create


def make_graph(num_nodes, **changes):
    return graphs.make_graph(num_nodes, 2, num_edges=4 * num_nodes, **changes)


def embedded(graph, seed=0, **settings):
    method = create("spectral", 2, num_nodes=graph.num_nodes, seed=seed, settings=settings)
    return method.embed(method.prepare(graph, CPU)).numpy()


@pytest.mark.parametrize("weighted", [False, True])
def test_columns_are_the_leading_eigenvectors(weighted):
    graph = make_graph(60, weighted=weighted)
    vectors = embedded(graph, hidden=10).astype(np.float64)
    assert vectors.shape == (60, 10)
    matrix = graph.adjacency.toarray().astype(np.float64)
    degrees = matrix.sum(axis=1)
    scale = np.array([1 / np.sqrt(degree) if degree else 0 for degree in degrees])
    values = np.sort(np.linalg.eigvalsh(scale[:, None] * matrix * scale))[::-1]
    images = scale[:, None] * (matrix @ (scale[:, None] * vectors))
    np.testing.assert_allclose(images, values[:10] * vectors, atol=1e-4)
    np.testing.assert_allclose(vectors.T @ vectors / 60, np.eye(10), atol=1e-4)


def test_a_larger_graph_is_solved_without_a_dense_matrix():
    graph = make_graph(400)
    vectors = embedded(graph, hidden=5)
    degrees = graph.degrees.astype(np.float64)
    # The leading eigenvector is known: the root of the degrees.
    leading = np.sqrt(degrees / degrees.sum()) * np.sqrt(400)
    np.testing.assert_allclose(np.abs(vectors[:, 0]), leading, atol=0.02)


def test_no_seed_is_needed_and_the_width_has_an_effect():
    graph = make_graph(60)
    assert embedded(graph, seed=1).tobytes() == embedded(graph, seed=2).tobytes()
    assert embedded(graph, hidden=9).shape == (60, 9)
    # A graph has fewer useful directions than nodes.
    assert embedded(graph, hidden=100).shape == (60, 58)
