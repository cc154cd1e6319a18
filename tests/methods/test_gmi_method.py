import math
from functools import partial

import graphs
import made_methods
import numpy as np
import pytest
import torch
from differences import assert_gradients_match_central_differences
from graphs import CPU, seeded
from made_methods import dense, in_double, two_convolutions
from scipy import sparse

from spgcl.datasets import load
from spgcl.engine.tensors import SparseMatrix
from spgcl.methods import gmi
from spgcl.methods.gmi import GMI, adjacency_loss, jensen_shannon, other_nodes, rectangle_softplus
from spgcl.training.loop import train

make_graph = partial(graphs.make_graph, 30, 12, num_edges=60, uneven=True)
# The oracles have no batch norm, which is tested with the encoder, and all three terms.
PAPER = {
    "layers": 2,
    "activation": "prelu",
    "own_weight": 0.8,
    "neighbour_weight": 1.0,
    "structure_weight": 1.0,
}
fresh = partial(made_methods.fresh, GMI, batch_norm="none", **PAPER)


def logistic(value):
    return 1 / (1 + math.exp(-value))


def naive_jensen_shannon(positive, negative):
    attraction = sum(math.log(1 + math.exp(-value)) for value in positive) / len(positive)
    return attraction + sum(math.log(1 + math.exp(value)) for value in negative) / len(negative)


def naive_adjacency_loss(vectors, adjacency):
    """The published weights: ones count (N^2 - E) / E times, and the mean N^2 / (N^2 - E) times."""
    count = len(vectors)
    edges = adjacency.sum().item() / 2
    total = 0.0
    for row in range(count):
        for column in range(count):
            probability = logistic((vectors[row] @ vectors[column]).item())
            if adjacency[row, column]:
                total -= (count**2 - edges) / edges * math.log(probability)
            else:
                total -= math.log(1 - probability)
    return total / count**2 * count**2 / (count**2 - edges)


def test_the_estimate_of_mutual_information_is_the_equation():
    generator = seeded(0)
    positive = torch.rand(7, generator=generator, dtype=torch.float64)
    negative = torch.rand(3, 7, generator=generator, dtype=torch.float64)
    expected = naive_jensen_shannon(positive.tolist(), negative.reshape(-1).tolist())
    assert jensen_shannon(positive, negative).item() == pytest.approx(expected, rel=1e-12)


def some_vectors(count=30, width=5):
    vectors = torch.randn(count, width, dtype=torch.float64, generator=seeded(2))
    return vectors.requires_grad_()


def some_entries():
    adjacency = torch.rand(30, 30, generator=seeded(4)) < 0.1
    adjacency = adjacency | adjacency.T | torch.eye(30, dtype=torch.bool)
    return adjacency, SparseMatrix.of(sparse.csr_array(adjacency.numpy()), CPU, symmetric=True)


def test_the_loss_of_the_adjacency_is_the_equation():
    vectors = some_vectors()
    adjacency, entries = some_entries()
    expected = naive_adjacency_loss(vectors.detach(), adjacency)
    assert adjacency_loss(vectors, entries).item() == pytest.approx(expected, rel=1e-12)


def whole_adjacency_loss(vectors, adjacency):
    """All pairs at once, with autograd."""
    products = vectors @ vectors.T
    edges = adjacency.sum() / 2
    ones = torch.nn.functional.softplus(-products)[adjacency].sum() / edges
    return ones + torch.nn.functional.softplus(products)[~adjacency].sum() / (len(vectors) ** 2 - edges)


@pytest.mark.parametrize("numbers", [1, 7 * 30, 2**24])
@pytest.mark.parametrize("sampled", [False, True])
def test_blocks_give_the_value_and_the_gradient_of_all_pairs_at_once(monkeypatch, numbers, sampled):
    monkeypatch.setattr(gmi, "BLOCK_NUMBERS", numbers)
    vectors = some_vectors()
    adjacency, entries = some_entries()
    # All rows in another order are a sample, too.
    rows = torch.arange(29, -1, -1) if sampled else None
    blocked = adjacency_loss(vectors, entries, rows)
    (gradient,) = torch.autograd.grad(blocked, vectors)
    whole = whole_adjacency_loss(vectors, adjacency)
    (expected,) = torch.autograd.grad(whole, vectors)
    torch.testing.assert_close(blocked, whole)
    torch.testing.assert_close(gradient, expected)


@pytest.mark.parametrize("numbers", [1, 2**24])
def test_the_sum_over_products_with_some_rows_has_the_gradients_of_differences(monkeypatch, numbers):
    monkeypatch.setattr(gmi, "BLOCK_NUMBERS", numbers)
    columns = some_vectors(6)
    anchors = some_vectors(4)
    assert torch.autograd.gradcheck(rectangle_softplus, (anchors, columns))
    assert torch.autograd.gradcheck(lambda vectors: rectangle_softplus(vectors, vectors), columns)


def test_sampled_rows_give_the_whole_in_expectation():
    vectors = some_vectors()
    _, entries = some_entries()
    sampled = [adjacency_loss(vectors, entries, torch.tensor([row])).item() for row in range(30)]
    whole = adjacency_loss(vectors, entries).item()
    assert np.mean(sampled) == pytest.approx(whole, rel=1e-12)
    assert np.std(sampled) > 1e-3


def test_without_a_weight_the_adjacency_is_not_used(monkeypatch):
    graph = make_graph()
    method, prepared = fresh(graph, hidden=8, structure_weight=0.0)
    monkeypatch.setattr(gmi, "adjacency_loss", lambda *_: torch.tensor(5.0))
    without = method.loss(prepared, 0, seeded(0))
    method.structure_weight = 1.0
    weighted = method.loss(prepared, 0, seeded(0))
    assert weighted.item() == pytest.approx(without.item() + 5)
    monkeypatch.setattr(gmi, "adjacency_loss", None)
    method.structure_weight = 0.0
    method.loss(prepared, 0, seeded(0)).backward()


def test_nothing_as_large_as_all_pairs_is_kept_for_the_gradient(monkeypatch):
    monkeypatch.setattr(gmi, "BLOCK_NUMBERS", 1000)
    graph = load("csbm-homophilic").graph
    method, prepared = fresh(graph, hidden=4)
    kept = []

    def look(tensor):
        kept.append(tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(look, lambda tensor: tensor):
        method.loss(prepared, 0, seeded(0)).backward()
    assert kept and max(kept) < graph.num_nodes**2 / 20


def test_negatives_are_other_nodes_and_all_of_them_alike():
    drawn = other_nodes(5, 4000, seeded(0))
    assert drawn.shape == (4000, 5)
    for node in range(5):
        counts = torch.bincount(drawn[:, node], minlength=5)
        assert counts[node] == 0
        others = torch.cat([counts[:node], counts[node + 1 :]])
        # Five deviations of a binomial count of 4000 draws at one in four.
        assert (others - 1000).abs().max() < 5 * math.sqrt(4000 * 0.25 * 0.75)


def naive_means(graph, rows):
    """Mean row of every node's neighbours by edge weight; zeros for a node without any."""
    adjacency = graph.adjacency.toarray().astype(np.float64)
    means = torch.zeros_like(rows)
    for node in range(graph.num_nodes):
        total = adjacency[node].sum()
        for neighbour in np.flatnonzero(adjacency[node]):
            means[node] += adjacency[node, neighbour] / total * rows[neighbour]
    return means


def naive_term(weight, bias, rows, others, drawn):
    def output(node, other):
        return logistic((rows[node] @ weight @ others[other] + bias).item())

    nodes = range(len(others))
    positive = [output(node, node) for node in nodes]
    negative = [output(draws[node], node) for draws in drawn.tolist() for node in nodes]
    return naive_jensen_shannon(positive, negative)


@pytest.mark.parametrize("sparse_features", [False, True])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_step_is_the_weighted_sum_of_three_terms(directed, weighted, sparse_features):
    graph = make_graph(sparse_features=sparse_features, directed=directed, weighted=weighted)
    weights = {"own_weight": 0.7, "neighbour_weight": 1.3, "structure_weight": 0.4}
    method, prepared = in_double(*fresh(graph, hidden=8, negatives=3, **weights))
    if not sparse_features:
        prepared.features = prepared.means @ prepared.graph.features
    assert isinstance(prepared.graph.features, SparseMatrix) == sparse_features
    for seed, pairing in enumerate((method.own, method.neighbour)):
        torch.nn.init.normal_(pairing.weight, generator=seeded(seed))
        torch.nn.init.constant_(pairing.bias, 0.3)
    loss = method.loss(prepared, 0, seeded(5))
    generator = seeded(5)
    first, second = other_nodes(30, 3, generator), other_nodes(30, 3, generator)
    state = {name: value.detach() for name, value in method.state_dict().items()}
    adjacency, features = prepared.graph.adjacency.dense().double(), dense(prepared.graph.features)
    hidden = two_convolutions(state, "encoder", adjacency, features)
    around = naive_means(graph, features @ state["encoder.convolutions.0.weight"])
    around = torch.where(around > 0, around, state["neighbour_activation.weight"] * around)
    expected = (
        0.7 * naive_term(state["own.weight"], 0.3, features, hidden, first)
        + 1.3 * naive_term(state["neighbour.weight"], 0.3, hidden, around, second)
        + 0.4 * naive_adjacency_loss(hidden, adjacency > 0)
    )
    assert loss.item() == pytest.approx(expected, rel=1e-6)


def test_gradients_match_central_differences():
    graph = make_graph(sparse_features=True)
    method, prepared = in_double(*fresh(graph, hidden=6, rebuilt_rows=11))
    # An isolated node without features would put an activation exactly on its bend.
    for convolution in method.encoder.convolutions:
        torch.nn.init.normal_(convolution.bias, std=0.1, generator=seeded(1))

    def value():
        return method.loss(prepared, 0, seeded(3))

    assert_gradients_match_central_differences(method, value)


def test_the_adjacency_is_rebuilt_as_training_goes_on():
    graph = load("csbm-homophilic").graph
    method, prepared = fresh(graph, hidden=16, steps=40, learning_rate=0.01)
    entries = prepared.graph.adjacency
    before = adjacency_loss(method.embed(prepared), entries)
    train(method, prepared, seed=0)
    assert adjacency_loss(method.embed(prepared), entries) < 0.95 * before
