"""Split-half agreement against naive loops, and its limits that are known in closed form."""

import numpy as np
import pytest
import torch
from graphs import CPU, make_graph

from spgcl.graph import Graph
from spgcl.methods.parts.channels import CHANNELS, COARSE, Surroundings
from spgcl.methods.parts.halves import (
    agreements,
    axis_reliabilities,
    centred_similarities,
    channels_on,
    halves,
    incomparable,
)
from spgcl.methods.parts.weights import SHRINKAGE, UNCERTAINTY, channel_weights

NAMES = list(CHANNELS)


def unbiased_hsic(first, second):
    """The unbiased estimator of Song et al. (2012), entry by entry."""
    count = len(first)
    one, other = first @ first.T, second @ second.T
    pairs = ends = total_one = total_other = 0.0
    for i in range(count):
        for j in range(count):
            if i == j:
                continue
            pairs += one[i, j] * other[i, j]
            total_one += one[i, j]
            total_other += other[i, j]
            for k in range(count):
                if k not in (i, j):
                    ends += one[i, j] * other[i, k]
    # `ends` leaves out k = j, which the estimator's middle term contains.
    middle = ends + pairs
    value = pairs + total_one * total_other / ((count - 1) * (count - 2)) - 2 * middle / (count - 2)
    return value / (count * (count - 3))


def test_centred_similarities_give_the_unbiased_estimator():
    generator = np.random.default_rng(0)
    first, second = generator.normal(size=(9, 4)), generator.normal(size=(9, 6))
    second[:, :4] += first
    one, other = (centred_similarities(torch.as_tensor(rows)) for rows in (first, second))
    found = float((one * other).sum()) / (9 * 6)
    assert found == pytest.approx(unbiased_hsic(first, second), rel=1e-9)
    torch.testing.assert_close(one.sum(dim=0), torch.zeros(9, dtype=one.dtype), atol=1e-12, rtol=0)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("sparse_features", [False, True])
def test_halves_share_neither_edges_nor_columns(directed, sparse_features):
    graph = make_graph(60, 30, num_edges=130, sparse_features=sparse_features, directed=directed)
    first, second = halves(graph, np.random.default_rng(0))
    assert (first.adjacency + second.adjacency - graph.adjacency).nnz == 0
    assert first.adjacency.multiply(second.adjacency).nnz == 0
    assert abs(first.num_edges - second.num_edges) <= 1
    dense = [half.features.toarray() if sparse_features else half.features for half in (first, second)]
    whole = graph.features.toarray() if sparse_features else graph.features
    np.testing.assert_array_equal(dense[0] + dense[1], whole)
    assert not (dense[0].any(axis=0) & dense[1].any(axis=0)).any()


def test_channels_are_those_of_a_naive_computation():
    graph = make_graph(40, 6, num_edges=90)
    found = channels_on(CPU)(graph)[0]
    adjacency = graph.adjacency.toarray().astype(np.float64)
    looped = adjacency + np.eye(40)
    root = np.diag(looped.sum(axis=1) ** -0.5)
    smoothing = root @ looped @ root
    sums = adjacency.sum(axis=1, keepdims=True)
    means = np.divide(adjacency, sums, out=np.zeros_like(adjacency), where=sums > 0)
    x = graph.features.astype(np.float64)
    hops = [np.linalg.matrix_power(smoothing, hop) @ x for hop in range(17)]
    wanted = [x, hops[1], hops[2], means @ x, means @ means @ x, sum(hops[1:]) / 16 + x / 20]
    for channel, rows in zip(found, wanted, strict=False):
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        unit = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 1e-12)
        np.testing.assert_allclose(channel.numpy(), unit, atol=1e-5)
    assert len(found) == len(CHANNELS)


def repeated(columns, num_nodes=300, num_edges=1500, *, seed=0):
    """A graph whose features are copies of one column, or independent noise."""
    generator = np.random.default_rng(seed)
    ends = generator.integers(0, num_nodes, (2, num_edges))
    values = generator.normal(size=(num_nodes, 1 if columns == "copies" else 64))
    return Graph.from_edges(*ends, np.ascontiguousarray(np.broadcast_to(values, (num_nodes, 64)), np.float32))


def test_a_random_projection_does_not_lower_reliability(monkeypatch):
    generator = np.random.default_rng(0)
    classes = generator.integers(0, 10, 600)
    counts = generator.random((600, 500)) < 0.02 + 0.2 * (classes[:, None] == np.arange(500) % 10)
    ends = generator.integers(0, 600, (2, 3000))
    graph = Graph.from_edges(*ends, counts.astype(np.float32))
    exact = agreements(graph, channels_on(CPU), repeats=3, seed=0)
    monkeypatch.setattr("spgcl.methods.parts.halves.SKETCHED", 120)
    projected = agreements(graph, channels_on(CPU), repeats=3, seed=0)
    own = NAMES.index("own")
    assert len(channels_on(CPU)(graph)) == 2
    assert projected[:, own, own].mean() == pytest.approx(exact[:, own, own].mean(), rel=0.1)


@pytest.mark.filterwarnings("ignore")
def test_noise_has_reliability_0_and_copies_have_1():
    own = NAMES.index("own")
    for columns, value in (("copies", 1.0), ("noise", 0.0)):
        found = agreements(repeated(columns), channels_on(CPU), repeats=4, seed=0)
        assert found[:, own, own].mean() == pytest.approx(value, abs=0.01)
    # Neighbours in one half are strangers to those in the other.
    near = NAMES.index("neighbours")
    assert found[:, near, near].mean() == pytest.approx(0, abs=0.02)


def test_axes_are_as_reliable_as_the_correlation_of_their_coordinates():
    graph, nodes = make_graph(40, 6, num_edges=90), torch.arange(5, 30)
    basis = torch.linalg.qr(torch.as_tensor(np.random.default_rng(0).normal(size=(6, 6)))).Q.float()

    def features(half):
        return [torch.tensor(half.features)]

    (found,) = axis_reliabilities(graph, features, [basis], nodes, repeats=3, seed=4)
    wanted, generator = np.zeros((3, 6)), np.random.default_rng(4)
    for repeat in range(3):
        first, second = halves(graph, generator)
        for axis in range(6):
            coordinates = [half.features[5:30] @ basis[:, axis].numpy() for half in (first, second)]
            wanted[repeat, axis] = np.corrcoef(*coordinates)[0, 1]
    np.testing.assert_allclose(found, wanted.mean(axis=0).clip(min=0), atol=1e-5)


@pytest.mark.filterwarnings("ignore")
def test_an_axis_of_copies_repeats_itself_and_axes_of_noise_do_not():
    def features(half):
        return [torch.tensor(half.features)]

    mean, constant = torch.full((64, 1), 1 / 8.0), torch.zeros(64, 1)
    for columns, value in (("copies", 1.0), ("noise", 0.0)):
        graph = repeated(columns, num_nodes=4000)
        nodes = torch.arange(graph.num_nodes)
        bases = [torch.cat([mean, constant], dim=1)]
        (found,) = axis_reliabilities(graph, features, bases, nodes, repeats=5, seed=0)
        assert found.tolist() == [pytest.approx(value, abs=0.1), 0]


def test_the_order_of_nodes_and_columns_changes_no_channel():
    graph = make_graph(50, 20, num_edges=120)
    order = np.random.default_rng(1).permutation(50)
    position, sources = np.argsort(order), np.repeat(np.arange(50), graph.degrees)
    permuted = Graph.from_edges(
        position[sources], position[graph.columns], graph.features[order][:, ::-1].copy()
    )
    for one, other in zip(channels_on(CPU)(graph)[0], channels_on(CPU)(permuted)[0], strict=True):
        torch.testing.assert_close(one[order] @ one[order].T, other @ other.T, rtol=1e-4, atol=1e-5)


def test_degrees_are_told_apart_without_any_spread():
    ring = Graph.from_edges(np.arange(30), (np.arange(30) + 1) % 30, np.eye(30, dtype=np.float32))
    around = channels_on(CPU)(ring)[0][-1]
    assert not around.any() and around.isfinite().all()
    assert Surroundings.__dataclass_fields__.keys() == {"smoothing", "transitions", "log_degrees"}


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        (make_graph(19, 8, num_edges=40), "20 nodes"),
        (make_graph(20, 8, num_edges=40), ""),
        (make_graph(40, 3, num_edges=90), "4 feature columns"),
        (make_graph(40, 4, num_edges=90), ""),
        (Graph.from_edges([0, 2], [1, 3], np.eye(30, dtype=np.float32)), "two neighbours"),
        (Graph.from_edges([0, 1], [1, 2], np.eye(30, dtype=np.float32)), ""),
    ],
)
def test_graphs_without_halves_are_named(graph, words):
    assert words in incomparable(graph) and bool(incomparable(graph)) == bool(words)


def with_reliability(**values):
    agreement = np.zeros((len(NAMES), len(NAMES)))
    for name, value in values.items():
        index = NAMES.index(name.replace("_", " "))
        agreement[index, index] = value
    return agreement


def test_channels_count_by_reliability_drawn_towards_equal_weights():
    weights = channel_weights(with_reliability(own=0.5, two_hops=0.25))
    drawn = SHRINKAGE * 0.5 + UNCERTAINTY
    wanted = np.full(len(NAMES), drawn)
    wanted[NAMES.index("own")], wanted[NAMES.index("two hops")] = 0.5 + drawn, 0.25 + drawn
    wanted[NAMES.index("degrees")] = 0
    np.testing.assert_allclose(weights, wanted / np.linalg.norm(wanted))


@pytest.mark.parametrize("coarse", COARSE)
def test_a_coarse_channel_counts_by_what_it_shares_with_finer_ones(coarse):
    agreement = with_reliability(neighbours=0.4, two_hops=0.4, **{coarse: 0.9})
    index = NAMES.index(coarse)
    alone = channel_weights(agreement)[index]
    for other, shared in (("neighbours", 0.3), ("two hops", 0.5)):
        agreement[index, NAMES.index(other)] = agreement[NAMES.index(other), index] = shared
    weights = channel_weights(agreement)
    # The lesser of the two squared correlations, 0.3^2 / (0.9 * 0.4), is what counts.
    drawn = (SHRINKAGE * 0.4 + UNCERTAINTY) if coarse != "degrees" else 0
    counted = 0.9 * 0.3**2 / (0.9 * 0.4)
    ratio = (counted + drawn) / (0.4 + SHRINKAGE * 0.4 + UNCERTAINTY)
    assert weights[index] / weights[NAMES.index("two hops")] == pytest.approx(ratio)
    assert weights[index] > alone
