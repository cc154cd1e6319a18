"""The loss of DeepWalk and node2vec against loops over the pairs of their walks."""

from itertools import accumulate

import numpy as np
import pytest
import torch
from graphs import CPU, seeded
from torch.nn.functional import logsigmoid

from spgcl.graph import Graph
from spgcl.methods import create
from spgcl.methods.parts import skipgram
from spgcl.methods.parts.walks import ENDED, expected_visits
from spgcl.training.loop import draws

WINDOW, NEGATIVES, LENGTH = 3, 2, 6
TINY = {"hidden": 4, "walks": 6, "walk_length": LENGTH, "window": WINDOW, "negatives": NEGATIVES, "steps": 6}
BIASES = {"deepwalk": {}, "node2vec": {"p": 0.5, "q": 2.0}}
WALKS_PER_STEP = 20
each_method = pytest.mark.parametrize("name", BIASES)
each_size_of_blocks = pytest.mark.parametrize("block", [WALKS_PER_STEP, 8], ids=["whole", "blocks"])


def make_graph():
    """Twenty nodes of a directed graph; no arc leads out of the last three."""
    generator = np.random.default_rng(0)
    sources, targets = generator.integers(0, 17, 60), generator.integers(0, 20, 60)
    return Graph.from_edges(sources, targets, np.ones((20, 1)), directed=True)


def fresh(name, graph):
    settings = {**TINY, **BIASES[name]}
    method = create(name, 1, num_nodes=graph.num_nodes, seed=0, settings=settings).double()
    generator = seeded(1)
    for parameter in method.parameters():
        parameter.data.normal_(generator=generator)
    return method, method.prepare(graph, CPU)


def noise_nodes(graph, state):
    """Replays the draws that follow a state of the generator, one row per walk."""
    generator = torch.Generator()
    generator.set_state(state)
    shape = (WALKS_PER_STEP, NEGATIVES * WINDOW)
    masses = expected_visits(graph, LENGTH) ** 0.75
    bounds = list(accumulate(masses / masses.sum()))
    found = torch.rand(shape, generator=generator, dtype=torch.float64).tolist()
    return [[sum(bound <= draw for bound in bounds) for draw in row] for row in found]


def naive_loss(centres, contexts, walks, noise):
    """The mean over all pairs, each with its part of the noise nodes of its walk."""
    total, pairs = 0.0, 0.0
    for walk, others in zip(walks, noise, strict=True):
        nodes = [node for node in walk if node != ENDED]
        for here, centre in enumerate(nodes):
            for there, context in enumerate(nodes):
                distance = abs(here - there)
                if not 0 < distance <= WINDOW:
                    continue
                weight = (WINDOW + 1 - distance) / WINDOW
                term = logsigmoid(centres[centre] @ contexts[context])
                for other in others:
                    term = term + NEGATIVES / len(others) * logsigmoid(-centres[centre] @ contexts[other])
                total, pairs = total - weight * term, pairs + weight
    return total / pairs


@each_method
@each_size_of_blocks
def test_the_loss_and_its_gradients_are_those_of_the_pairs_one_by_one(name, block, monkeypatch):
    monkeypatch.setattr(skipgram, "WALKS_PER_BLOCK", block)
    graph = make_graph()
    method, prepared = fresh(name, graph)
    generator = draws(0, CPU)
    method.loss(prepared, 0, generator)
    # The second step has its walks already and draws nothing but noise.
    state = generator.get_state()
    found = method.loss(prepared, 1, generator)
    walks = prepared.memory["walks"][WALKS_PER_STEP : 2 * WALKS_PER_STEP]
    lengths = (walks != ENDED).sum(dim=1)
    assert {1, LENGTH} < set(lengths.tolist())
    parameters = method.skip_gram.centres, method.skip_gram.contexts
    expected = naive_loss(*parameters, walks.tolist(), noise_nodes(graph, state))
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=0)
    for one, other in zip(
        torch.autograd.grad(found, parameters), torch.autograd.grad(expected, parameters), strict=True
    ):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-9)


@each_size_of_blocks
def test_a_step_without_a_pair_has_a_loss_and_gradients_of_zero(block, monkeypatch):
    monkeypatch.setattr(skipgram, "WALKS_PER_BLOCK", block)
    method, prepared = fresh("deepwalk", make_graph())
    walks = torch.full((2 * WALKS_PER_STEP, LENGTH), ENDED)
    walks[:, 0] = 7
    prepared.memory["walks"] = walks
    loss = method.loss(prepared, 1, draws(0, CPU))
    loss.backward()
    assert loss.detach() == 0
    assert not any(parameter.grad.any() for parameter in method.parameters())
