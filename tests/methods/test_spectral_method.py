from dataclasses import replace

import numpy as np
import pytest
import torch

from spgcl.errors import InputError
from spgcl.estimator import Embedder
from spgcl.evaluation import probe
from spgcl.graph import Graph
from spgcl.methods import create

CPU = torch.device("cpu")


def make_graph(num_nodes, *, seed=0, weighted=False):
    """The last node is isolated."""
    generator = np.random.default_rng(seed)
    ends = generator.integers(0, num_nodes - 1, (2, 4 * num_nodes))
    weights = generator.uniform(0.5, 2, 4 * num_nodes) if weighted else None
    return Graph.from_edges(*ends, np.ones((num_nodes, 2)), weights=weights)


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
    for place in range(10):
        image = scale * (matrix @ (scale * vectors[:, place]))
        np.testing.assert_allclose(image, values[place] * vectors[:, place], atol=1e-4)
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


def test_another_graph_is_refused():
    model = Embedder("spectral", hidden=4).fit(make_graph(60))
    assert model.transform(make_graph(60)).shape == (60, 4)
    with pytest.raises(InputError, match="spectral is transductive"):
        model.transform(make_graph(60, seed=1))


def accuracy(dataset, name, **settings):
    """Mean over two splits under the paper's probe."""
    parts = {part: getattr(dataset.splits, part)[:2] for part in ("train", "validation", "test")}
    splits = replace(dataset.splits, **parts)
    vectors = Embedder(name, device="cpu", **settings).fit_transform(dataset)
    return probe(vectors, dataset.labels, splits, starts=1).mean


def test_chameleon_coordinates_beat_an_untrained_encoder(chameleon):
    assert accuracy(chameleon, "spectral", hidden=64) > accuracy(chameleon, "untrained", hidden=64) + 8
