import math

import numpy as np
import pytest
from scipy import sparse

from spgcl.graph import Graph
from spgcl.graph.structural import degree_features, spectral_features
from spgcl.io import read_graph


def adjacency(pairs, num_nodes, weights=None):
    sources, targets = np.array(pairs).T
    values = np.ones(len(pairs)) if weights is None else np.array(weights, dtype=float)
    matrix = sparse.coo_array((values, (sources, targets)), shape=(num_nodes, num_nodes)).tocsr()
    return matrix.maximum(matrix.T).tocsr()


def ring(num_nodes):
    return adjacency([(node, (node + 1) % num_nodes) for node in range(num_nodes)], num_nodes)


def random_graph(num_nodes, num_edges, seed=0):
    pairs = np.random.default_rng(seed).integers(0, num_nodes, (num_edges, 2))
    return adjacency(pairs[pairs[:, 0] != pairs[:, 1]], num_nodes)


def test_degree_features_match_a_naive_loop():
    matrix = random_graph(40, 50)
    degrees = [len(matrix[[node]].indices) for node in range(40)]
    for node, row in enumerate(degree_features(matrix)):
        near = [math.log1p(degrees[other]) for other in matrix[[node]].indices] or [0.0]
        expected = [math.log1p(degrees[node]), sum(near) / len(near), min(near), max(near)]
        assert row == pytest.approx(expected, abs=1e-6)
    assert 0 in degrees


def test_degree_features_of_directed_graphs_see_both_directions():
    arcs = sparse.csr_array(([1.0, 1.0], ([0, 1], [2, 2])), shape=(3, 3))
    features = degree_features(arcs, directed=True)
    assert features.shape == (3, 8)
    assert features[:, 0].tolist() == pytest.approx([math.log(2), math.log(2), 0])
    assert features[:, 4].tolist() == pytest.approx([0, 0, math.log(3)])


@pytest.mark.parametrize("num_nodes", [100, 300])
def test_spectral_features_are_leading_eigenvectors(num_nodes):
    matrix = random_graph(num_nodes, 4 * num_nodes)
    matrix = adjacency(
        [*zip(*matrix.nonzero(), strict=True), *((0, node) for node in range(1, num_nodes))], num_nodes
    )
    scale = 1 / np.sqrt(matrix.sum(axis=1))
    dense = scale[:, None] * matrix.toarray() * scale
    values = np.linalg.eigvalsh(dense)[::-1][:64]
    features = spectral_features(matrix).astype(float) / math.sqrt(num_nodes)
    assert features.shape == (num_nodes, 64)
    assert np.abs(features.T @ features - np.eye(64)).max() < 1e-4
    assert np.linalg.norm(dense @ features - features * values, axis=0).max() < 5e-3
    first = features[np.abs(features).round(6).argmax(axis=0), np.arange(64)]
    assert (first > 0).all()


def test_spectral_features_use_weights():
    pairs = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)]
    light, heavy = (spectral_features(adjacency(pairs, 4, [1, 1, 1, 1, weight])) for weight in (1, 50))
    assert np.abs(light - heavy).max() > 0.1


@pytest.mark.parametrize(
    "matrix",
    [
        adjacency([(0, 1)], 2),
        adjacency([(0, 1)], 3),
        adjacency([(0, 1)], 400),
        ring(66),
        ring(300),
        adjacency([(node, node + 1) for node in range(0, 600, 2)], 600),
        sparse.csr_array(np.ones((300, 300)) - np.eye(300)),
    ],
    ids=["pair", "pair+1", "mostly isolated", "small ring", "ring", "disjoint pairs", "complete"],
)
def test_spectral_features_of_small_and_degenerate_graphs(matrix):
    num_nodes = matrix.shape[0]
    features = spectral_features(matrix)
    assert features.shape == (num_nodes, min(64, max(num_nodes - 2, 1))) and features.dtype == np.float32
    assert np.isfinite(features).all() and np.abs(features).max() > 0
    assert not features[np.diff(matrix.indptr) == 0].any()
    assert features.tobytes() == spectral_features(matrix.copy()).tobytes()


def test_the_choice_is_noted_and_features_belong_to_their_nodes():
    graph = read_graph([("c", "b"), ("c", "a"), ("c", "d")], structural="degree")
    assert graph.features[graph.index_of("c"), 0] == pytest.approx(math.log(4))
    assert graph.notes[-1] == "4 structural features (degree) made, as there are none"
    spectral = Graph.of([("c", "b"), ("c", "a"), ("c", "d")], structural="spectral")
    assert spectral.num_features == 2 and spectral.notes[-1].startswith("2 structural features (spectral)")
