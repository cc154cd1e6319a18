import numpy as np
import pytest
from graphs import make_graph, refusing
from theory_graphs import mixed

import spgcl.theory.deviations as module
from spgcl import Graph
from spgcl.datasets import contextual_block_model
from spgcl.evaluation import class_mixing
from spgcl.theory.assumption import fitted
from spgcl.theory.concentration import DEGREES, concentration
from spgcl.theory.deviations import node_bounds, printed_product_bounds, product_bounds
from spgcl.theory.layer import random_layer


def one_binary_feature():
    """A graph of two classes whose only feature is 0 or 1 by a coin."""
    drawn = contextual_block_model(
        num_nodes=400, num_classes=2, average_degree=10, homophily=0.5, num_features=1, signal=0, seed=0
    )
    coins = np.random.default_rng(0).integers(0, 2, (400, 1)).astype(np.float32)
    return drawn.graph.with_features(coins), drawn.labels


def test_bounds_against_the_equations():
    layer = random_layer(make_graph(uneven=True), 6)
    one, other, radius = np.array([2, 9]), np.array([5, 3]), layer.radius
    for index, (here, there) in enumerate(zip(one, other, strict=True)):
        node = radius * np.sqrt(2 * np.log(2 * 6 / 0.05) / here)
        printed = radius**2 * 6 * np.sqrt(2 * np.log(2 / 0.05) / (here * there))
        summed = radius**2 * 6 * np.sqrt(2 * np.log(2 / 0.05) * (1 / here + 1 / there))
        assert node_bounds(layer, one, 0.05)[index] == pytest.approx(node)
        assert printed_product_bounds(layer, one, other, 0.05)[index] == pytest.approx(printed)
        assert product_bounds(layer, one, other, 0.05)[index] == pytest.approx(summed)


def test_bounded_differences_hold_for_every_change_of_one_neighbour():
    """The steps of the proof that replaces the printed one, over all neighbourhoods of signs."""
    signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * 5)).reshape(5, -1).T
    # Node i has three neighbours, node j two; K = 1, w = 1, R = 1.
    one, other = np.maximum(signs[:, :3].mean(axis=1), 0), np.maximum(signs[:, 3:].mean(axis=1), 0)
    for changed in range(5):
        flipped = signs.copy()
        flipped[:, changed] *= -1
        left = np.maximum(flipped[:, :3].mean(axis=1), 0)
        right = np.maximum(flipped[:, 3:].mean(axis=1), 0)
        most = 2 / 3 if changed < 3 else 2 / 2
        assert max(np.abs(one - left).max(), np.abs(other - right).max()) <= most + 1e-12
        assert np.abs(one * other - left * right).max() <= most + 1e-12
    # The printed proof takes |sum x| <= R sqrt(D), which fails when neighbours agree.
    assert np.abs(signs[:, :3].sum(axis=1)).max() == 3 > np.sqrt(3)


def test_drawn_nodes_have_the_mean_and_the_variance_of_the_assumption():
    graph, labels = mixed()
    layer, mixing = random_layer(graph, 4), class_mixing(graph, labels)
    model = fitted(layer, mixing, labels)
    # Far from 0 the layer is linear, and the moments of a mean are known.
    lifted = layer.projected + 100
    object.__setattr__(model, "projected", lifted)
    means = np.array([lifted[labels == label].mean(axis=0) for label in range(3)])
    squares = np.array([(lifted[labels == label] ** 2).mean(axis=0) for label in range(3)])
    draws = 4000
    for degree, outputs in model.running(1, [1, 3, 8], draws, np.random.default_rng(0)):
        expected = (means[1] + (degree - 1) * mixing[1] @ means) / degree
        own = squares[1] - means[1] ** 2
        around = mixing[1] @ squares - (mixing[1] @ means) ** 2
        variance = (own + (degree - 1) * around) / degree**2
        error = np.sqrt(variance / draws)
        assert (np.abs(outputs.mean(axis=0) - expected) < 4.5 * error).all()
        np.testing.assert_allclose(outputs.var(axis=0), variance, rtol=0.15)


def test_expectations_are_those_of_nodes_of_the_block_model():
    """Nodes of one class have the drawn expectation; shuffled labels show that they need not."""
    drawn = contextual_block_model(
        num_nodes=3000, num_classes=2, average_degree=12, homophily=0.2, num_features=8, signal=2, seed=1
    )
    found = concentration(drawn.graph, drawn.labels, draws=1000)
    # 1,500 nodes of a class with deviations of about 0.3.
    assert found.class_offset < 0.05
    assert found.between_classes > 5 * found.class_offset
    shuffled = np.random.default_rng(0).permutation(drawn.labels)
    assert concentration(drawn.graph, shuffled, draws=1000).between_classes < 0.1 * found.between_classes


def test_expectations_of_one_class_differ_between_degrees():
    """The first statement of Theorem 1 holds at equal degrees only: the node itself is among D_ii."""
    drawn = contextual_block_model(
        num_nodes=1000, num_classes=2, average_degree=12, homophily=0.0, num_features=4, signal=3, seed=1
    )
    found = concentration(drawn.graph, drawn.labels)
    # At degree 2 half of the mean is the own class, at degree 256 nearly nothing.
    assert found.between_degrees > 0.5


def test_at_least_one_minus_delta_are_within_the_bounds_and_deviations_fall():
    graph, labels = mixed()
    found = concentration(graph, labels, delta=0.2)
    assert found.holds and [level.degree for level in found.drawn] == list(DEGREES)
    for level in found.drawn:
        assert min(level.within, level.product_within) >= 0.8
    assert found.drawn[-1].deviation < found.drawn[0].deviation / 5
    assert found.rate == pytest.approx(-0.5, abs=0.1)
    assert sum(level.nodes for level in found.graph) == found.nodes == graph.num_nodes
    assert found.within >= 0.8


def test_the_printed_bound_on_inner_products_fails_where_the_other_holds():
    found = concentration(*one_binary_feature(), draws=2000)
    assert found.holds
    assert found.product_rate == pytest.approx(-0.5, abs=0.1)
    assert DEGREES[-1] in found.printed_fails and DEGREES[0] not in found.printed_fails
    assert found.drawn[-1].printed_within < 0.9 < 0.95 <= found.drawn[-1].product_within
    assert "fails as printed" in found.verdict[-1]


def test_a_bound_that_is_too_small_is_seen(monkeypatch):
    """With a twentieth of the radius in the bounds, most nodes are outside."""
    graph, labels = mixed()
    bounds = module.node_bounds
    monkeypatch.setattr(module, "node_bounds", lambda *given: bounds(*given) / 20)
    found = concentration(graph, labels)
    assert not found.holds and found.drawn[0].within < 0.5 and "Not at every degree" in found.verdict[0]


def test_compared_pairs_share_no_neighbour():
    """In a star every two nodes do, so that only nodes are compared."""
    spokes = np.arange(1, 30)
    features = np.random.default_rng(0).normal(size=(30, 3)).astype(np.float32)
    graph = Graph.from_edges(np.zeros(29, dtype=np.int64), spokes, features)
    found = concentration(graph, np.arange(30) % 2, draws=50)
    assert found.product_within is None and {level.pairs for level in found.graph} == {0}
    assert sum(level.nodes for level in found.graph) == 30


def test_unlabelled_nodes_are_not_compared():
    graph, labels = mixed()
    partly = np.where(np.arange(len(labels)) % 4, labels, -1)
    assert concentration(graph, partly, draws=50).nodes == np.count_nonzero(partly >= 0)


@pytest.mark.parametrize("delta", [0.0, 1.0])
def test_delta_is_a_probability(delta):
    with refusing("delta", delta):
        concentration(*mixed(), delta=delta)
