import numpy as np
import pytest
from graphs import make_graph, refusing
from theory_graphs import cliques, mixed

from spgcl.datasets import contextual_block_model
from spgcl.theory.bound import bound
from spgcl.theory.transformed import symmetric_normalised, transform


def test_every_term_against_loops():
    graph, labels = mixed()
    found = bound(graph, labels, positives=3, dimensions=4, delta=0.1)
    adjacency = transform(graph, positives=3).adjacency
    assert (found.slope, found.tau) == (1, 1)
    ends = list(zip(*adjacency.toarray().nonzero(), strict=True))
    assert found.phi == pytest.approx(np.mean([labels[a] != labels[b] for a, b in ends]))
    values, vectors = np.linalg.eigh(np.eye(len(labels)) - symmetric_normalised(adjacency).toarray())
    assert found.eigenvalue == pytest.approx(values[4])
    assert found.c_degree == pytest.approx(np.mean([1 / (degree + 1) for degree in graph.degrees]))
    radius = max(np.linalg.norm(row.astype(float)) for row in graph.features)
    assert (found.radius, found.weight_norms) == (pytest.approx(radius), pytest.approx(256))
    assert found.spectral_bound == pytest.approx(found.phi / values[4])
    second = radius**2 * found.c_degree * np.sqrt(2 * np.log(2 / 0.1)) / values[4] * 256
    assert found.bound == pytest.approx(found.phi / values[4] + second)
    assert found.norm_bound == pytest.approx(1 / (1 - values[3]))
    # The best classifier leaves what the leading eigenvectors do not span.
    degrees = adjacency.toarray().sum(axis=1)
    left = 0.0
    for label in range(3):
        target = np.sqrt(degrees / degrees.sum()) * (labels == label)
        rest = target - sum((vector @ target) * vector for vector in vectors[:, :4].T)
        left += rest @ rest
    assert found.error == pytest.approx(left)
    assert found.classifier_norm <= found.norm_bound


def test_a_bound_that_says_something_and_holds():
    easy = contextual_block_model(
        num_nodes=120, num_classes=3, average_degree=10, homophily=0.8, num_features=8, signal=1, seed=0
    )
    found = bound(easy.graph, easy.labels, positives=8, dimensions=12)
    assert found.holds and 0 < found.error < found.spectral_bound < 0.5
    assert found.misclassified <= 2 * found.error
    first, second, _ = found.verdict
    assert "vacuous" not in first and "vacuous" in second


def test_a_bound_above_the_trivial_error_is_called_vacuous():
    graph = make_graph(num_nodes=120, num_edges=300)
    found = bound(graph, np.arange(120) % 3, dimensions=8)
    assert found.spectral_bound > 1 and found.holds
    # Labels that have nothing to do with the graph: the error is nearly that of answering 0.
    assert found.error > 0.5 and "vacuous" in found.verdict[0]


def test_a_graph_in_more_parts_than_dimensions_has_no_bound():
    graph, labels = cliques(4, 6)
    found = bound(graph, labels, positives=5, dimensions=3)
    assert found.components == 4 and found.eigenvalue == 0
    assert found.bound is None and found.spectral_bound is None
    assert "4 parts" in found.verdict[0] and "vacuous" in found.verdict[0]
    # With a dimension per part, phi is 0 and nothing is left to err.
    enough = bound(graph, labels, positives=5, dimensions=4)
    assert (enough.phi, enough.spectral_bound) == (0, 0)
    assert enough.error == pytest.approx(0, abs=1e-12) and enough.classifier_norm == pytest.approx(1)


def test_nodes_without_labels_are_left_out():
    graph, labels = mixed()
    partly = np.where(np.arange(len(labels)) % 4, labels, -1)
    assert bound(graph, partly, dimensions=4).nodes == np.count_nonzero(partly >= 0)


@pytest.mark.parametrize("wrong", [{"dimensions": 0}, {"dimensions": 60}, {"delta": 0.0}, {"delta": 1.0}])
def test_values_out_of_range_are_refused(wrong):
    graph, labels = mixed()
    with refusing(*wrong, *wrong.values()):
        bound(graph, labels, **wrong)
