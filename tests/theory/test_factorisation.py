import numpy as np
import pytest
from graphs import refusing
from theory_graphs import mixed

from spgcl.theory.factorisation import (
    averaged,
    contrastive_loss,
    contrastive_loss_by_degree,
    factorisation,
    factorisation_loss,
    factorised,
    identities,
)
from spgcl.theory.transformed import pair_matrix, symmetric_normalised, undirected

UNEVEN = np.array([[1, 2], [0, 2], [0, 1], [0, 1], [0, 3], [0, 4], [5, 0]])


def ring(count, reach):
    """Every node selects its nearest on a ring: pairs are mutual, and all degrees equal."""
    steps = [step for step in range(-reach, reach + 1) if step]
    return np.array([[(node + step) % count for step in steps] for node in range(count)])


def vectors(count, width=3, seed=0):
    return np.random.default_rng(seed).normal(size=(count, width))


def test_the_contrastive_loss_against_loops():
    found = vectors(len(UNEVEN))
    positive = [found[node] @ found[other] for node, row in enumerate(UNEVEN) for other in row]
    negative = [(one @ other) ** 2 for one in found for other in found]
    expected = -2 * np.mean(positive) + np.mean(negative)
    assert contrastive_loss(found, UNEVEN) == pytest.approx(expected, rel=1e-13)


def test_the_loss_by_degree_against_loops():
    adjacency, found = undirected(pair_matrix(UNEVEN)), vectors(len(UNEVEN))
    dense = adjacency.toarray()
    weights, expected = dense.sum(axis=1) / dense.sum(), 0.0
    for one in range(len(dense)):
        for other in range(len(dense)):
            product = found[one] @ found[other]
            expected += weights[one] * weights[other] * product**2
            expected -= 2 * dense[one, other] / dense.sum() * product
    assert contrastive_loss_by_degree(found, adjacency) == pytest.approx(expected, rel=1e-13)


def test_the_factorisation_loss_against_the_dense_norm():
    matrix, found = averaged(pair_matrix(UNEVEN)), vectors(len(UNEVEN))
    dense = matrix.toarray()
    whole = np.linalg.norm(dense - found @ found.T) ** 2
    assert factorisation_loss(matrix, found) + (dense**2).sum() == pytest.approx(whole, rel=1e-13)


def test_lemma_1_is_exact_as_printed_if_the_transformed_graph_is_regular():
    found = factorised(ring(40, 2), 3, steps=500, seed=0)
    assert found.regular and found.largest_degree == 4
    for values in (found.random, found.minimiser):
        assert abs(values.printed) < 1e-14 and abs(values.predicted) < 1e-14
        assert abs(values.by_degree) < 1e-14 and abs(values.averaged) < 1e-14
    # One matrix, so one minimiser: a constant, a sine and a cosine.
    assert found.descent.angle < 1e-3 and found.descent.printed_angle < 1e-3
    assert "as printed" in found.verdict[0] and "not regular" not in found.verdict[0]


def test_otherwise_it_is_off_by_the_difference_of_two_matrices_and_two_forms_stay_exact():
    found = identities(UNEVEN, vectors(len(UNEVEN)))
    assert abs(found.printed) > 0.01
    assert found.printed == pytest.approx(found.predicted, rel=1e-10)
    assert abs(found.by_degree) < 1e-14 and abs(found.averaged) < 1e-14


def test_the_gap_of_the_printed_form_is_no_constant():
    """In absolute terms, at two representations, from dense matrices."""
    pairs = pair_matrix(UNEVEN)
    normalised = symmetric_normalised(undirected(pairs)).toarray()
    gaps = []
    for seed in (0, 1):
        found = vectors(len(UNEVEN), seed=seed)
        factors = found / np.sqrt(len(found))
        loss = np.linalg.norm(normalised - factors @ factors.T) ** 2 - (normalised**2).sum()
        gaps.append(loss - contrastive_loss(found, UNEVEN))
    assert abs(gaps[0] - gaps[1]) > 0.01


def test_descent_spans_the_leading_eigenvectors():
    graph, _ = mixed()
    found = factorisation(graph, positives=3, dimensions=4)
    assert not found.regular and found.descent.eigengap > 1e-3
    assert 0 <= found.descent.excess + 1e-12 < 1e-9 and found.descent.angle < 0.01
    # Degrees differ, so the printed matrix has other eigenvectors.
    assert found.descent.printed_angle > 1


def test_descent_that_is_cut_short_does_not():
    graph, _ = mixed()
    found = factorisation(graph, positives=3, dimensions=4, steps=2)
    assert found.descent.steps == 2 and found.descent.excess > 1e-3 and found.descent.angle > 1


def test_no_angle_is_claimed_for_equal_eigenvalues():
    """After the constant, the eigenvectors of a ring come in pairs: two dimensions cut through one."""
    found = factorised(ring(40, 2), 2, steps=500, seed=0)
    assert found.descent.eigengap < 1e-10 and "not unique" in found.verdict[1]
    assert abs(found.descent.excess) < 1e-9


@pytest.mark.parametrize("dimensions", [0, 59])
def test_dimensions_out_of_range_are_refused(dimensions):
    with refusing(dimensions):
        factorisation(mixed()[0], dimensions=dimensions)
