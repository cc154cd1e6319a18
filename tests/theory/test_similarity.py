import numpy as np
import pytest
from theory_graphs import cliques, mixed

from spgcl.theory.similarity import compared, similarity
from spgcl.theory.transformed import symmetric_normalised, transform


def by_loops(representations, labels, probabilities):
    """Means and sums over all ordered pairs, one pair at a time."""
    mass, weight = {True: 0.0, False: 0.0}, {True: 0.0, False: 0.0}
    for one in range(len(labels)):
        for other in range(len(labels)):
            alike, drawn = bool(labels[one] == labels[other]), probabilities[one] * probabilities[other]
            mass[alike] += drawn * (representations[one] @ representations[other])
            weight[alike] += drawn
    return mass[True] / weight[True], mass[False] / weight[False], mass[True], mass[False]


def test_pairs_against_loops():
    generator = np.random.default_rng(0)
    representations, labels = generator.normal(size=(25, 3)), generator.integers(0, 4, 25)
    probabilities = generator.dirichlet(np.ones(25))
    found = compared(representations, labels, probabilities)
    expected = by_loops(representations, labels, probabilities)
    np.testing.assert_allclose((found.same, found.other, found.same_mass, found.other_mass), expected)
    assert found.gap == pytest.approx(expected[0] - expected[1])
    assert found.difference == pytest.approx(expected[2] - expected[3])


def test_both_sides_against_loops():
    graph, labels = mixed()
    found = similarity(graph, labels, positives=3, dimensions=4)
    adjacency = transform(graph, positives=3).adjacency
    matrix, degrees = symmetric_normalised(adjacency).toarray(), adjacency.toarray().sum(axis=1)
    values, vectors = np.linalg.eigh(matrix)
    factors = vectors[:, -4:] * np.sqrt(values[-4:])
    representations = factors / np.sqrt(degrees / degrees.sum())[:, None]
    uniform = np.full(60, 1 / 60)
    for pairs, probabilities in ((found.uniform, uniform), (found.by_degree, degrees / degrees.sum())):
        expected = by_loops(representations, labels, probabilities)
        np.testing.assert_allclose((pairs.same, pairs.other, pairs.same_mass, pairs.other_mass), expected)
    left = ((matrix - factors @ factors.T) ** 2).sum() / (matrix**2).sum()
    assert found.loss_fraction == pytest.approx(left)
    across = sum(
        adjacency[one, other] for one in range(60) for other in range(60) if labels[one] != labels[other]
    )
    assert found.phi == pytest.approx(across / adjacency.sum())
    assert found.phi_printed == pytest.approx(across / 60**2)


def test_at_a_loss_of_zero_the_parts_are_one_minus_phi_and_phi():
    """With all eigenvalues, negative ones included, F F^T is the matrix itself, for any degrees."""
    graph, labels = mixed()
    found = similarity(graph, labels, positives=3, dimensions=4)
    adjacency = transform(graph, positives=3).adjacency
    matrix, degrees = symmetric_normalised(adjacency).toarray(), adjacency.toarray().sum(axis=1)
    assert degrees.min() < degrees.max()
    probabilities = degrees / degrees.sum()
    products = (
        matrix / np.sqrt(np.outer(probabilities, probabilities)) * np.outer(probabilities, probabilities)
    )
    same = products[labels[:, None] == labels].sum()
    assert found.exact.same_mass == pytest.approx(same) == pytest.approx(1 - found.phi)
    assert found.exact.difference == pytest.approx(1 - 2 * found.phi)
    # So the step of the printed proof that arrives at 1 - phi is a factor of two off.
    assert found.exact.difference < 1 - found.phi


def test_the_gap_is_large_for_separate_cliques():
    graph, labels = cliques(4, 6)
    found = similarity(graph, labels, positives=5, dimensions=4)
    assert found.phi == 0 and found.holds
    # Four equal classes: Z_i . Z_j is 4 within a class and 0 between classes.
    assert (found.uniform.same, found.uniform.other) == (pytest.approx(4), pytest.approx(0, abs=1e-9))
    assert found.loss_fraction > 0 and "at least" in found.verdict[0]


def test_the_gap_misses_one_minus_phi_when_classes_cut_through_the_graph():
    graph, labels = cliques(4, 6)
    crossing = np.arange(len(labels)) % 2
    found = similarity(graph, crossing, positives=5, dimensions=4)
    # Of a node's five clique members, three have the other class.
    assert found.phi == pytest.approx(0.6)
    assert not found.holds and found.uniform.gap == pytest.approx(0, abs=1e-9)
    assert "below" in found.verdict[0]
    # Two equal classes and equal degrees: c (1 - phi) - c phi / (c - 1).
    assert found.exact.gap == pytest.approx(2 * 0.4 - 2 * 0.6)
