from functools import partial

import graphs
import numpy as np
import pytest
import torch
from graphs import CPU, seeded
from made_methods import TINY_WALKS as TINY
from made_methods import trained_bytes
from torch.nn.functional import logsigmoid

from spgcl.errors import InputError
from spgcl.face.estimator import Embedder
from spgcl.graph import Graph
from spgcl.methods import create
from spgcl.methods.parts import skipgram
from spgcl.methods.parts.skipgram import pair_weights, skip_gram, sum_of_weights
from spgcl.methods.parts.walks import ENDED, expected_visits
from spgcl.runs.record import load_checkpoint, save_checkpoint
from spgcl.training.loop import draws, train

make_graph = partial(graphs.make_graph, num_features=3)


def fresh():
    graph = make_graph()
    method = create("deepwalk", 3, num_nodes=graph.num_nodes, seed=0, settings=TINY)
    return method, method.prepare(graph, CPU)


def random_vectors(*shape):
    return torch.randn(shape, generator=seeded(sum(shape)), dtype=torch.float64)


def test_the_objective_is_word2vecs_pair_by_pair():
    """Every pair, its probability to lie in word2vec's random window, and its noise, in plain loops."""
    window, negatives, lengths, length, noise_draws = 3, 4, [6, 4, 1], 6, 5
    centres, contexts = random_vectors(3, length, 7), random_vectors(3, length, 7) / 2
    noise = random_vectors(3, noise_draws, 7)
    present = torch.tensor([[position < given for position in range(length)] for given in lengths])
    expected, pairs = 0.0, 0.0
    for walk, given in enumerate(lengths):
        for here in range(given):
            for there in range(given):
                distance = abs(here - there)
                probability = sum(distance <= drawn for drawn in range(1, window + 1)) / window
                if here == there or not probability:
                    continue
                pairs += probability
                term = logsigmoid(centres[walk, here] @ contexts[walk, there])
                for number in range(noise_draws):
                    other = logsigmoid(-centres[walk, here] @ noise[walk, number])
                    term = term + negatives * other / noise_draws
                expected -= probability * float(term)
    found = skip_gram(centres, contexts, noise, present, window=window, negatives=negatives)
    assert float(found) == pytest.approx(expected, rel=1e-10)
    assert float(sum_of_weights(present, window)) == pytest.approx(pairs)
    assert float(pair_weights(present, window).sum()) == pytest.approx(pairs)


def test_every_node_starts_as_many_walks_as_asked_for(monkeypatch):
    monkeypatch.setattr(skipgram, "WALKS_PER_DRAW", 35)
    method, prepared = fresh()
    seen, drawn = [], []
    generator = draws(0, CPU)
    for step in range(method.steps):
        loss = method.loss(prepared, step, generator)
        assert loss.isfinite()
        # Ten walks per step, so that three steps share what is drawn at once.
        first = 10 * (step % 3)
        seen += prepared.memory["walks"][first : first + 10, 0].tolist()
        drawn.append(prepared.memory["walks"])
    assert np.bincount(seen, minlength=40).tolist() == [3] * 40
    assert [drawn[step] is drawn[step - 1] for step in range(1, 7)] == [True, True, False] * 2


def test_noise_goes_by_expected_visits():
    _, prepared = fresh()
    probabilities = expected_visits(make_graph(), 6) ** 0.75
    np.testing.assert_allclose(
        np.diff(prepared.noise.numpy(), prepend=0), probabilities / probabilities.sum(), atol=1e-6
    )


def test_the_learning_rate_falls_on_a_line():
    method, _ = fresh()
    rates = [method.learning_rate_at(step) for step in range(method.steps + 1)]
    np.testing.assert_allclose(rates, np.linspace(0.05, 0, 13), atol=1e-12)


def test_a_stopped_training_continues_between_two_draws_of_walks(tmp_path):
    whole = trained_bytes(*fresh())
    method, prepared = fresh()
    taken = iter(range(100))
    train(
        method,
        prepared,
        seed=0,
        stop=lambda: next(taken) == 4,
        save=lambda checkpoint: save_checkpoint(tmp_path, checkpoint),
    )
    method, prepared = fresh()
    start = load_checkpoint(tmp_path)
    assert start.step == 5
    assert trained_bytes(method, prepared, start=start) == whole


def test_isolated_nodes_keep_the_vector_they_started_with():
    method, prepared = fresh()
    before = method.embed(prepared)
    train(method, prepared, seed=0)
    after = method.embed(prepared)
    assert torch.equal(before[-1], after[-1]) and before[-1].abs().max() > 0
    assert (before[:-1] != after[:-1]).all(dim=1).all()
    assert (prepared.memory["walks"] == ENDED).any()


def test_a_graph_of_another_size_is_refused():
    method, _ = fresh()
    other = Graph.from_edges(np.array([0, 1]), np.array([1, 2]), np.ones((3, 3)))
    with pytest.raises(InputError, match=r"40 nodes.* 3;"):
        method.prepare(other, CPU)


def test_two_communities_are_told_apart():
    """Two cliques joined by one edge: after training, the nearest nodes are those of the own clique."""
    pairs = [(u, v) for u in range(8) for v in range(u)]
    edges = np.array([*pairs, *[(u + 8, v + 8) for u, v in pairs], (0, 8)])
    graph = Graph.from_edges(edges[:, 0], edges[:, 1], np.ones((16, 1)))
    settings = {"hidden": 8, "walks": 20, "walk_length": 8, "window": 2, "steps": 60, "learning_rate": 0.1}
    vectors = Embedder("deepwalk", **settings).fit_transform(graph)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    similar = unit @ unit.T
    # The two nodes at the bridge share neighbours with both sides.
    inner = [1, 2, 3, 4, 5, 6, 7]
    assert similar[np.ix_(inner, inner)].min() > similar[1:8, 8:].max() + 0.3


def test_a_window_beyond_the_walk_costs_no_more_than_the_walk():
    graph = Graph.from_edges([0, 1, 2], [1, 2, 3], np.ones((4, 1), np.float32))
    settings = {"hidden": 4, "walks": 2, "walk_length": 5, "window": 10**9, "steps": 2}
    method = create("deepwalk", 1, num_nodes=4, seed=0, settings=settings)
    history = train(method, method.prepare(graph, CPU), seed=0)
    assert np.isfinite(history.losses).all() and len(history.losses) == 2
