import math
from functools import partial

import graphs
import made_methods
import numpy as np
import pytest
import torch
from differences import assert_gradients_match_central_differences
from graphs import CPU, seeded
from made_methods import in_double

from spgcl.engine.convolutions import Block
from spgcl.graph import Graph
from spgcl.methods.gae import GAE, VGAE, divergence_from_prior
from spgcl.methods.parts.edge_keys import entry_keys, is_entry
from spgcl.methods.parts.reconstruction import full_reconstruction, reconstruction, sampled_reconstruction

TINY = {"hidden": 8, "embedding_width": 4, "steps": 6, "learning_rate": 0.05}
TINY |= {"dropout": 0.0, "negative_ratio": 1, "normalise_features": True}
make_graph = partial(graphs.make_graph, 30, 5, num_edges=60)
each_kind = pytest.mark.parametrize("kind", [GAE, VGAE])


def fresh(kind=GAE, **changes):
    return made_methods.fresh(kind, make_graph(), **{**TINY, **changes})


def make_double(kind=GAE, **changes):
    """In double precision, with biases, and with weights large enough for scores far from zero."""
    method, prepared = fresh(kind, **changes)
    for seed, weight in enumerate(method.parameters()):
        torch.nn.init.normal_(weight, std=0.5, generator=seeded(seed))
    return in_double(method, prepared)


def cross_entropy(vectors, one, other, present):
    score = sum(a * b for a, b in zip(vectors[one], vectors[other], strict=True))
    probability = 1 / (1 + math.exp(-score))
    return -math.log(probability if present else 1 - probability)


def naive_reconstruction(vectors, looped, pairs):
    """Half the mean over entries of A + I and half that over those of `pairs` that are none."""
    rows = vectors.tolist()
    numbers = range(len(rows))
    present = [
        cross_entropy(rows, one, other, True) for one in numbers for other in numbers if looped[one, other]
    ]
    absent = [cross_entropy(rows, one, other, False) for one, other in pairs if not looped[one, other]]
    return (sum(present) / len(present) + sum(absent) / len(absent)) / 2


@pytest.mark.parametrize("directed", [False, True])
def test_the_full_reconstruction_is_that_of_naive_loops(directed):
    graph = make_graph(directed=directed)
    vectors = torch.randn(30, 4, generator=seeded(), dtype=torch.float64)
    entries = GAE(5).prepare(graph, CPU).graph.adjacency
    looped = graph.adjacency.toarray() + np.eye(30)
    everything = [(one, other) for one in range(30) for other in range(30)]
    expected = naive_reconstruction(vectors, looped, everything)
    assert full_reconstruction(vectors, entries).item() == pytest.approx(expected, rel=1e-12)


def test_the_sampled_reconstruction_is_that_of_naive_loops_over_the_same_draws():
    vectors = torch.randn(30, 4, generator=seeded(), dtype=torch.float64)
    prepared = GAE(5).prepare(make_graph(), CPU)
    entries, keys = prepared.graph.adjacency, prepared.keys
    looped = make_graph().adjacency.toarray() + np.eye(30)
    drawn = torch.randint(900, (3 * len(keys),), generator=seeded(9))
    pairs = [divmod(number, 30) for number in drawn.tolist()]
    expected = naive_reconstruction(vectors, looped, pairs)
    found = sampled_reconstruction(vectors, entries, keys, 3, seeded(9))
    assert found.item() == pytest.approx(expected, rel=1e-12)


def test_sampling_estimates_the_full_reconstruction():
    vectors = torch.randn(30, 4, generator=seeded(), dtype=torch.float64)
    prepared = GAE(5).prepare(make_graph(), CPU)
    entries = prepared.graph.adjacency
    estimate = sampled_reconstruction(vectors, entries, prepared.keys, 500, seeded(9))
    torch.testing.assert_close(estimate, full_reconstruction(vectors, entries), rtol=0.02, atol=0)


@pytest.mark.parametrize("directed", [False, True])
def test_the_gradient_of_the_full_reconstruction_is_that_of_the_whole_matrix(directed):
    prepared = GAE(5).prepare(make_graph(directed=directed), CPU)
    entries = prepared.graph.adjacency
    assert entries.symmetric != directed
    vectors = torch.randn(30, 4, generator=seeded(), dtype=torch.float64, requires_grad=True)
    value = full_reconstruction(vectors, entries)
    (gradient,) = torch.autograd.grad(3 * value, vectors)
    scores = vectors @ vectors.T
    present = torch.zeros(900, dtype=torch.bool)
    present[prepared.keys] = True
    errors = torch.nn.functional.softplus(torch.where(present.view(30, 30), -scores, scores)).flatten()
    expected = (errors[present].mean() + errors[~present].mean()) / 2
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(gradient, torch.autograd.grad(3 * expected, vectors)[0])
    assert torch.autograd.gradcheck(lambda rows: full_reconstruction(rows, entries), (vectors,))


def test_a_graph_with_all_edges_has_nothing_to_repel():
    sources, targets = np.triu_indices(4, 1)
    prepared = GAE(2).prepare(Graph.from_edges(sources, targets, np.eye(4, 2)), CPU)
    vectors = torch.randn(4, 3, generator=seeded(), dtype=torch.float64)
    expected = torch.nn.functional.softplus(-(vectors @ vectors.T)).mean() / 2
    entries = prepared.graph.adjacency
    torch.testing.assert_close(full_reconstruction(vectors, entries), expected)
    sampled = sampled_reconstruction(vectors, entries, prepared.keys, 1, seeded())
    torch.testing.assert_close(sampled, expected)


def test_entries_are_found_among_keys():
    graph = make_graph(directed=True)
    keys = entry_keys(GAE(5).prepare(graph, CPU).graph.adjacency)
    looped = torch.from_numpy(graph.adjacency.toarray() + np.eye(30)).flatten() > 0
    assert torch.equal(is_entry(torch.arange(900), keys), looped)


def two_convolutions(method):
    """Z with whole matrices, the second convolution without activation."""
    graph = make_graph()
    looped = graph.adjacency.toarray() + np.eye(30)
    scale = 1 / np.sqrt(looped.sum(axis=1))
    propagation = torch.from_numpy(looped * scale * scale[:, None])
    features = torch.from_numpy(graph.features.astype(np.float64))
    state = {name: value.double() for name, value in method.state_dict().items()}
    hidden = propagation @ features @ state["first.convolutions.0.weight"]
    hidden = (hidden + state["first.convolutions.0.bias"]).relu()
    return propagation @ hidden @ state["second.weight"] + state["second.bias"]


def test_the_embedding_is_that_of_two_convolutions_the_second_without_activation():
    method, prepared = fresh(normalise_features=False)
    embeddings = method.embed(prepared)
    torch.testing.assert_close(embeddings, two_convolutions(method).float())
    assert (embeddings < 0).any() and not embeddings.requires_grad


@pytest.mark.parametrize("negative_ratio", [0, 1, 2])
def test_the_loss_is_the_reconstruction_from_two_convolutions(negative_ratio):
    method, prepared = make_double(negative_ratio=negative_ratio, normalise_features=False)
    looped = make_graph().adjacency.toarray() + np.eye(30)
    drawn = torch.randint(900, (negative_ratio * np.count_nonzero(looped),), generator=seeded())
    pairs = [divmod(number, 30) for number in (drawn.tolist() or range(900))]
    expected = naive_reconstruction(two_convolutions(method), looped, pairs)
    assert method.loss(prepared, 0, seeded()).item() == pytest.approx(expected, rel=1e-6)


@each_kind
@pytest.mark.parametrize("negative_ratio", [0, 2])
def test_gradients_match_central_differences(negative_ratio, kind):
    method, prepared = make_double(kind, negative_ratio=negative_ratio)
    assert_gradients_match_central_differences(method, lambda: method.loss(prepared, 0, seeded()))


def naive_divergence(means, log_deviations):
    total = 0.0
    for mean_row, log_row in zip(means.tolist(), log_deviations.tolist(), strict=True):
        for mean, log_deviation in zip(mean_row, log_row, strict=True):
            variance = math.exp(log_deviation) ** 2
            total += (variance + mean**2 - 1 - math.log(variance)) / 2
    return total / len(means)


def test_the_divergence_is_that_of_naive_loops_and_of_the_distributions():
    means, log_deviations = torch.randn(2, 9, 3, generator=seeded(), dtype=torch.float64)
    found = divergence_from_prior(means, log_deviations)
    assert found.item() == pytest.approx(naive_divergence(means, log_deviations), rel=1e-12)
    normal = torch.distributions.Normal
    parted = torch.distributions.kl_divergence(normal(means, log_deviations.exp()), normal(0.0, 1.0))
    torch.testing.assert_close(found, parted.sum(dim=1).mean())
    assert divergence_from_prior(torch.zeros(4, 2), torch.zeros(4, 2)) == 0


@pytest.mark.parametrize("negative_ratio", [0, 1, 2])
@pytest.mark.parametrize("weight", [0.0, 1.0, 30.0])
def test_the_loss_is_the_reconstruction_of_a_draw_and_the_divergence_per_pair(weight, negative_ratio):
    method, prepared = make_double(VGAE, negative_ratio=negative_ratio, divergence_weight=weight)
    block = Block(prepared.graph.adjacency)
    hidden = method.first(prepared.graph, None, None)
    means, log_deviations = method.means(hidden, block), method.log_deviations(hidden, block)
    generator = seeded()
    drawn = means + torch.randn(30, 4, generator=generator, dtype=torch.float64) * log_deviations.exp()
    expected = reconstruction(drawn, prepared, negative_ratio, generator).item()
    expected += weight * naive_divergence(means, log_deviations) / 30
    assert method.loss(prepared, 0, seeded()).item() == pytest.approx(expected, rel=1e-9)


def test_the_embedding_is_the_mean_and_takes_no_draw():
    method, prepared = fresh(VGAE, dropout=0.5)
    expected = method.means(method.first.embed(prepared.graph), Block(prepared.graph.adjacency))
    assert torch.equal(method.embed(prepared), expected.detach())
    assert torch.equal(method.embed(prepared), method.embed(prepared))
    assert not method.embed(prepared).requires_grad


def test_huge_deviations_stay_finite():
    method, prepared = fresh(VGAE)
    torch.nn.init.constant_(method.log_deviations.bias, 500.0)
    assert method.loss(prepared, 0, seeded()).isfinite()
