import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from differences import assert_gradients_match_central_differences

from spgcl.errors import InputError
from spgcl.graph import Graph
from spgcl.methods import create
from spgcl.methods.gae import GAE
from spgcl.methods.parts.edge_keys import entry_keys, is_entry
from spgcl.methods.parts.reconstruction import full_reconstruction, sampled_reconstruction
from spgcl.training.loop import train

CPU = torch.device("cpu")
TINY = {"hidden": 8, "embedding_width": 4, "steps": 6, "learning_rate": 0.05}


def make_graph(*, directed=False):
    """Thirty nodes, the last one isolated."""
    generator = np.random.default_rng(0)
    sources, targets = generator.integers(0, 29, (2, 60))
    features = generator.normal(size=(30, 5)).astype(np.float32)
    return Graph.from_edges(sources, targets, features, directed=directed)


def make_method(**changes):
    torch.manual_seed(0)
    method = GAE(5, **{**TINY, **changes})
    return method, method.prepare(make_graph(), CPU)


def seeded(seed=5):
    return torch.Generator().manual_seed(seed)


def make_double(**changes):
    """In double precision, with biases, and with weights large enough for scores far from zero."""
    method, prepared = make_method(**changes)
    for place, weight in enumerate(method.parameters()):
        torch.nn.init.normal_(weight, std=0.5, generator=seeded(place))
    prepared.graph = replace(prepared.graph, features=prepared.graph.features.double())
    return method.double(), prepared


def cross_entropy(vectors, one, other, present):
    score = sum(a * b for a, b in zip(vectors[one], vectors[other], strict=True))
    chance = 1 / (1 + math.exp(-score))
    return -math.log(chance if present else 1 - chance)


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
@pytest.mark.parametrize("nodes", [1, 7, 15, 30])
def test_blocks_change_neither_the_value_nor_the_gradient(nodes, directed):
    prepared = GAE(5).prepare(make_graph(directed=directed), CPU)
    entries = prepared.graph.adjacency
    assert entries.symmetric != directed
    vectors = torch.randn(30, 4, generator=seeded(), dtype=torch.float64, requires_grad=True)
    value = full_reconstruction(vectors, entries, block_nodes=nodes)
    (gradient,) = torch.autograd.grad(3 * value, vectors)
    scores = vectors @ vectors.T
    present = torch.zeros(900, dtype=torch.bool)
    present[prepared.keys] = True
    errors = torch.nn.functional.softplus(torch.where(present.view(30, 30), -scores, scores)).flatten()
    expected = (errors[present].mean() + errors[~present].mean()) / 2
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(gradient, torch.autograd.grad(3 * expected, vectors)[0])
    assert torch.autograd.gradcheck(lambda rows: full_reconstruction(rows, entries, nodes), (vectors,))


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
    method, prepared = make_method(normalise_features=False)
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


@pytest.mark.parametrize("negative_ratio", [0, 2])
def test_gradients_match_central_differences(negative_ratio):
    method, prepared = make_double(negative_ratio=negative_ratio)
    assert_gradients_match_central_differences(method, lambda: method.loss(prepared, 0, seeded()))


@pytest.mark.parametrize("negative_ratio", [0, 2])
def test_the_same_seed_gives_the_same_bytes(negative_ratio):
    def outcome(seed):
        method, prepared = make_method(negative_ratio=negative_ratio, dropout=0.2)
        return train(method, prepared, seed=seed).losses, method.embed(prepared).numpy().tobytes()

    assert outcome(1) == outcome(1) != outcome(2)


def test_an_embedding_without_width_is_refused():
    with pytest.raises(InputError, match="embedding_width is 0; it must be above 0"):
        create("gae", 5, seed=0, settings={"embedding_width": 0})
