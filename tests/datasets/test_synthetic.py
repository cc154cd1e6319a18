import numpy as np
import pytest

from spgcl.datasets import contextual_block_model, load
from spgcl.errors import InputError

SMALL = {"num_nodes": 2000, "num_classes": 5, "average_degree": 12.0, "homophily": 0.3, "num_features": 8}


def _make(**changes):
    return contextual_block_model(**(SMALL | {"signal": 1.0, "seed": 3} | changes))


def edge_fractions(dataset):
    """Fraction of the edges between classes at each distance on the ring."""
    graph, labels = dataset.graph, dataset.labels
    steps = np.abs(np.repeat(labels, graph.degrees) - labels[graph.columns])
    steps = np.minimum(steps, dataset.num_classes - steps)
    return np.bincount(steps, minlength=3) / len(steps)


@pytest.mark.parametrize("homophily", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("num_classes", [2, 3, 5])
def test_degree_and_homophily_are_the_expected_ones(homophily, num_classes):
    dataset = _make(homophily=homophily, num_classes=num_classes, num_nodes=20_000)
    # 120,000 edges: four standard deviations of the fraction are below 0.006, of the degree below 0.14.
    assert edge_fractions(dataset)[0] == pytest.approx(homophily, abs=0.006)
    assert dataset.graph.degrees.mean() == pytest.approx(12, abs=0.14)
    assert homophily not in (0.0, 1.0) or edge_fractions(dataset)[0] == homophily


def test_other_edges_stay_between_neighbours_on_the_ring():
    fractions = edge_fractions(_make())
    assert fractions[2] == 0 and fractions[1] == pytest.approx(0.7, abs=0.05)


def test_every_pair_of_a_block_is_equally_likely():
    # 20 nodes in 2 classes: 90 pairs within, 100 across, each drawn over many seeds.
    counts = np.zeros((20, 20))
    runs = 400
    for seed in range(runs):
        dataset = _make(num_nodes=20, num_classes=2, average_degree=4, homophily=0.5, seed=seed)
        order = np.argsort(dataset.labels, kind="stable")
        counts += dataset.graph.adjacency.toarray()[np.ix_(order, order)]
    within = counts[:10, :10][~np.eye(10, dtype=bool)] / runs
    across = counts[:10, 10:].ravel() / runs
    assert within.mean() == pytest.approx(20 / 90, abs=0.01)
    assert across.mean() == pytest.approx(20 / 100, abs=0.01)
    # Five standard deviations of a fraction over 400 runs, which is 0.021.
    assert np.abs(within - 20 / 90).max() < 0.105 and np.abs(across - 20 / 100).max() < 0.105


def test_two_classes_have_opposite_means_of_the_given_length():
    dataset = _make(num_nodes=40_000, num_classes=2, signal=3.0)
    first, second = (dataset.graph.features[dataset.labels == label].mean(axis=0) for label in (0, 1))
    np.testing.assert_allclose(first, -second, atol=0.04)
    assert np.linalg.norm(first) == pytest.approx(3, abs=0.05)
    assert dataset.graph.features[dataset.labels == 0].std(axis=0) == pytest.approx(1, abs=0.02)


def test_the_seed_decides_everything():
    one, same, other = _make(), _make(), _make(seed=4)
    assert one.graph.digest == same.graph.digest != other.graph.digest
    np.testing.assert_array_equal(one.splits.train, same.splits.train)
    np.testing.assert_array_equal(one.labels, same.labels)


def test_splits_are_stratified_tenths():
    dataset = load("csbm-heterophilic")
    assert len(dataset.splits) == 10
    for label in range(5):
        assert dataset.splits.train[0][dataset.labels == label].sum() == 30
    assert dataset.splits.validation[0].sum() == 150 and dataset.splits.test[0].sum() == 1200


@pytest.mark.parametrize("name, homophily", [("csbm-homophilic", 0.8), ("csbm-heterophilic", 0.1)])
def test_built_in_graphs_reward_looking_at_neighbours(name, homophily):
    from sklearn.linear_model import LogisticRegression

    dataset = load(name)
    assert dataset.name == name and edge_fractions(dataset)[0] == pytest.approx(homophily, abs=0.03)
    graph, train, test = dataset.graph, dataset.splits.train[0], dataset.splits.test[0]
    walk = graph.adjacency / np.maximum(graph.degrees, 1)[:, None]
    scores = []
    for features in (graph.features, walk @ (walk @ graph.features)):
        scaled = features / features.std(axis=0)
        model = LogisticRegression(C=0.05).fit(scaled[train], dataset.labels[train])
        scores.append(model.score(scaled[test], dataset.labels[test]))
    assert 0.35 < scores[0] < 0.6 and scores[1] > scores[0] + 0.2


@pytest.mark.parametrize(
    "changes, named",
    [
        ({"homophily": 1.2}, "homophily 1.2"),
        ({"num_classes": 1}, "1 classes"),
        ({"average_degree": 0}, "degree 0"),
        ({"average_degree": 1500}, "above 0.5"),
        ({"num_features": 0}, "0 and 1.0"),
        ({"signal": float("nan")}, "8 and nan"),
    ],
)
def test_impossible_values_are_refused(changes, named):
    with pytest.raises(InputError, match=named):
        _make(**changes)
