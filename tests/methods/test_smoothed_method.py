from dataclasses import replace

import numpy as np
import pytest
import torch
from graphs import CPU
from scipy import sparse

from spgcl.graph import Graph
from spgcl.graph.propagate import normalised_adjacency
from spgcl.methods import create


def make_graph(*, sparse_features=False, directed=False):
    """Forty nodes, the last one isolated, one of the others without features."""
    generator = np.random.default_rng(0)
    sources, targets = generator.integers(0, 39, (2, 90))
    features = generator.normal(size=(40, 30)).astype(np.float32)
    if sparse_features:
        features *= generator.random(features.shape) < 0.05
    features[3] = 0
    given = sparse.csr_array(features) if sparse_features else features
    return Graph.from_edges(sources, targets, given, directed=directed)


def embedded(graph, **settings):
    method = create("smoothed", graph.num_features, seed=0, settings=settings)
    return method.embed(method.prepare(graph, CPU)).numpy()


def naive(graph, hops):
    """S^hops X, entry by entry, rows divided by their length."""
    matrix = normalised_adjacency(graph).toarray().astype(np.float64)
    rows = graph.features
    rows = (rows.toarray() if sparse.issparse(rows) else rows).astype(np.float64)
    for _ in range(hops):
        rows = np.array([sum(matrix[node, other] * rows[other] for other in range(40)) for node in range(40)])
    lengths = np.array([np.sqrt(sum(value * value for value in row)) for row in rows])
    return rows / np.where(lengths > 0, lengths, 1)[:, None]


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("sparse_features", [False, True])
@pytest.mark.parametrize("hops", [0, 1, 3])
def test_features_are_averaged_as_often_as_asked(hops, sparse_features, directed):
    graph = make_graph(sparse_features=sparse_features, directed=directed)
    np.testing.assert_allclose(embedded(graph, hops=hops), naive(graph, hops), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("sparse_features", [False, True])
def test_joined_blocks_stand_side_by_side(sparse_features):
    graph = make_graph(sparse_features=sparse_features)
    expected = np.hstack([naive(graph, hops) for hops in range(3)])
    np.testing.assert_allclose(embedded(graph, hops=2, joined=True), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("scale", [1e-30, 1e-15, 1e20, 1e35])
def test_the_scale_of_the_features_does_not_matter(scale):
    graph = make_graph()
    scaled = replace(graph, features=np.float32(scale) * graph.features)
    np.testing.assert_allclose(embedded(scaled), embedded(graph), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("hops", [0, 2])
def test_the_graph_and_what_was_prepared_of_it_are_left_as_they_were(hops):
    graph = make_graph()
    arrays = (graph.rows, graph.columns, graph.features)
    copies = [array.copy() for array in arrays]
    method = create("smoothed", graph.num_features, seed=0, settings={"hops": hops})
    prepared = method.prepare(graph, CPU)
    tensors = (prepared.graph.features, prepared.graph.adjacency.values)
    clones = [tensor.clone() for tensor in tensors]
    method.embed(prepared)
    assert all(map(np.array_equal, arrays, copies)) and all(map(torch.equal, tensors, clones))
