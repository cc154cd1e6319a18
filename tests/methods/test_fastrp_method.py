from functools import partial

import graphs
import numpy as np
import pytest
import torch
from graphs import CPU, seeded

from spgcl.errors import InputError
from spgcl.face.estimator import Embedder
from spgcl.graph import Graph
from spgcl.methods import create
from spgcl.methods.fastrp import projected_powers, very_sparse_projection

make_graph = partial(graphs.make_graph, num_features=2)


def fresh(graph, seed=0, **settings):
    method = create("fastrp", 2, num_nodes=graph.num_nodes, seed=seed, settings={"hidden": 6, **settings})
    return method, method.prepare(graph, CPU)


def embedded(graph, seed=0, **settings):
    method, prepared = fresh(graph, seed, **settings)
    return method.embed(prepared).numpy()


def whole_powers(graph, projection, weights, penalty):
    """The equations with whole matrices: P, its powers, the diagonal L, the projection R."""
    matrix = graph.adjacency.toarray().astype(np.float64)
    degrees = matrix.sum(axis=1)
    transitions = np.array(
        [row / degree if degree else row for row, degree in zip(matrix, degrees, strict=True)]
    )
    relative = matrix.sum(axis=0) / matrix.sum()
    diagonal = np.diag([degree**-penalty if degree else 0 for degree in relative])
    return sum(
        weight * np.linalg.matrix_power(transitions, power) @ diagonal @ projection.numpy()
        for power, weight in enumerate(weights, 1)
    )


def test_nodes_that_lead_to_dead_ends_are_told_apart():
    """Three users and two items, the last user like the first: no item leads on."""
    graph = Graph.from_edges([0, 1, 1, 2], [3, 3, 4, 3], np.ones((5, 1)), directed=True)
    vectors = embedded(graph, hidden=64)
    assert vectors[0].any() and np.array_equal(vectors[0], vectors[2])
    assert not np.allclose(vectors[0], vectors[1])


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_powers_of_the_transition_matrix_are_projected_and_added(weighted, directed):
    graph = make_graph(weighted=weighted, directed=directed)
    _, prepared = fresh(graph)
    projection = torch.randn(40, 6, generator=seeded(1))
    weights, penalty = (0.5, 1.0, 2.0, 3.0), 0.4
    found = projected_powers(
        prepared.transitions, prepared.strengths, projection, weights, degree_penalty=penalty
    )
    expected = whole_powers(graph, projection, weights, penalty)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_embedding_is_the_standardised_sum_of_powers_under_the_projection_of_the_seed(weighted, directed):
    graph = make_graph(weighted=weighted, directed=directed)
    powers = {"first_weight": 3.0, "second_weight": 0.5, "third_weight": 1.0, "fourth_weight": 2.0}
    method, prepared = fresh(graph, **powers, degree_penalty=0.4)
    projection = very_sparse_projection(40, 6, seeded(int(method.seed)))
    expected = whole_powers(graph, projection, powers.values(), 0.4)
    expected = (expected - expected.mean(axis=0)) / expected.std(axis=0)
    np.testing.assert_allclose(method.embed(prepared).numpy(), expected, rtol=1e-4, atol=1e-5)


def test_the_projection_is_as_sparse_as_the_paper_says():
    matrix = very_sparse_projection(2500, 200, seeded(0)).numpy()
    values, counts = np.unique(matrix, return_counts=True)
    np.testing.assert_allclose(values, [-np.sqrt(50), 0, np.sqrt(50)], rtol=1e-6)
    # Half a million entries, 1 in 50 not zero: a binomial whose deviation is 99.
    assert abs(counts[0] - 5000) < 400 and abs(counts[2] - 5000) < 400


def test_columns_have_mean_zero_and_deviation_one():
    vectors = embedded(make_graph(), hidden=64).astype(np.float64)
    spread = vectors.std(axis=0)
    np.testing.assert_allclose(vectors.mean(axis=0), 0, atol=1e-5)
    # With few nodes a column of the projection may be empty.
    assert (np.isclose(spread, 1, atol=1e-4) | (spread == 0)).all() and (spread > 0).mean() > 0.9


def test_the_seed_decides_the_projection_and_travels_with_the_weights():
    graph = make_graph()
    method, prepared = fresh(graph, seed=1)
    other, _ = fresh(graph, seed=2)
    assert not torch.equal(other.embed(prepared), method.embed(prepared))
    other.load_state_dict(method.state_dict())
    assert torch.equal(other.embed(prepared), method.embed(prepared))


def test_a_penalty_beyond_numbers_is_named():
    with pytest.raises(InputError, match=r"degree_penalty$"):
        Embedder("fastrp", hidden=4, degree_penalty=100.0).fit_transform(make_graph())
