import numpy as np
import pytest
from graphs import make_graph, refusing

from spgcl.theory.layer import random_layer


@pytest.mark.parametrize("kind", [{}, {"sparse_features": True}, {"directed": True}])
def test_outputs_are_rectified_means_over_the_neighbours_and_the_node(kind):
    graph = make_graph(uneven=True, **kind)
    layer = random_layer(graph, 5, seed=3)
    adjacency = graph.adjacency.toarray()
    for node in range(graph.num_nodes):
        around = [node, *np.flatnonzero(adjacency[node]).tolist()]
        mean = np.mean([layer.projected[other] for other in around], axis=0)
        assert layer.degrees[node] == len(around)
        np.testing.assert_allclose(layer.outputs[node], np.maximum(mean, 0), atol=1e-12)


def test_weights_have_columns_of_length_one_and_the_radius_is_the_longest_row():
    graph = make_graph(uneven=True)
    layer = random_layer(graph, 5)
    np.testing.assert_allclose(layer.weight_norms, 1)
    lengths = [float(np.sqrt((row.astype(float) ** 2).sum())) for row in graph.features]
    assert layer.radius == pytest.approx(max(lengths))
    # No projection of a row onto a column of length one is longer than the row.
    assert np.abs(layer.projected).max() <= layer.radius


def test_edge_weights_are_refused():
    with refusing("edge weights", "--weight none"):
        random_layer(make_graph(weighted=True), 5)
