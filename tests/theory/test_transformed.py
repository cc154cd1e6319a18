import numpy as np
import pytest
from graphs import make_graph, refusing

from spgcl.theory.transformed import (
    disagreement,
    pair_matrix,
    symmetric_normalised,
    transform,
    undirected,
)


def test_every_node_selects_those_with_the_largest_cosine_among_the_allowed():
    graph = make_graph(uneven=True)
    among = np.arange(graph.num_nodes) % 3 > 0
    found = transform(graph, positives=4, among=among)
    outputs = found.layer.outputs
    assert set(found.nodes) == set(np.flatnonzero(among))
    for row, node in enumerate(found.nodes):
        cosine = {
            other: outputs[node]
            @ outputs[other]
            / np.linalg.norm(outputs[node])
            / np.linalg.norm(outputs[other])
            for other in found.nodes
            if other != node
        }
        best = sorted(cosine, key=cosine.get, reverse=True)[:4]
        assert set(found.nodes[found.selected[row]]) == set(best)


def test_nodes_without_outputs_are_left_out():
    graph = make_graph()
    features = np.array(graph.features)
    # The last node is isolated.
    features[-1] = 0
    found = transform(graph.with_features(features), positives=3)
    assert found.num_nodes == graph.num_nodes - 1 and graph.num_nodes - 1 not in found.nodes


def test_matrices_against_loops():
    selected = np.array([[1, 2], [0, 3], [3, 0], [0, 1]])
    pairs, adjacency = pair_matrix(selected), undirected(pair_matrix(selected))
    edges = {(node, int(other)) for node, row in enumerate(selected) for other in row}
    degrees = np.zeros(4)
    for one in range(4):
        for other in range(4):
            assert pairs[one, other] == ((one, other) in edges)
            joined = (one, other) in edges or (other, one) in edges
            assert adjacency[one, other] == joined
            degrees[one] += joined
    assert len(set(degrees)) > 1
    normalised = symmetric_normalised(adjacency).toarray()
    np.testing.assert_allclose(normalised, adjacency.toarray() / np.sqrt(np.outer(degrees, degrees)))
    # Lemma 2: the probabilities of edges have the same normalised matrix.
    np.testing.assert_allclose(symmetric_normalised(adjacency / adjacency.sum()).toarray(), normalised)
    labels = np.array([0, 0, 1, 1])
    ends = [(one, other) for one in range(4) for other in range(4) if adjacency[one, other]]
    assert disagreement(adjacency, labels) == np.mean([labels[a] != labels[b] for a, b in ends])


@pytest.mark.parametrize("positives", [0, 40])
def test_more_positives_than_nodes_are_refused(positives):
    with refusing(positives):
        transform(make_graph(), positives=positives)
