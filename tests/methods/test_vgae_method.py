import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from differences import assert_gradients_match_central_differences

from spgcl.engine.convolutions import Block
from spgcl.errors import InputError
from spgcl.graph import Graph
from spgcl.methods import create
from spgcl.methods.gae import VGAE, divergence_from_prior
from spgcl.methods.parts.reconstruction import reconstruction
from spgcl.training.loop import train

CPU = torch.device("cpu")
TINY = {"hidden": 8, "embedding_width": 4, "steps": 6, "learning_rate": 0.05}


def make_graph():
    """Thirty nodes, the last one isolated."""
    generator = np.random.default_rng(0)
    sources, targets = generator.integers(0, 29, (2, 60))
    return Graph.from_edges(sources, targets, generator.normal(size=(30, 5)).astype(np.float32))


def make_method(**changes):
    torch.manual_seed(0)
    method = VGAE(5, **{**TINY, **changes})
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
def test_the_loss_is_the_reconstruction_of_a_draw_and_the_divergence_of_a_pair(weight, negative_ratio):
    method, prepared = make_double(negative_ratio=negative_ratio, divergence_weight=weight)
    block = Block(prepared.graph.adjacency)
    hidden = method.first(prepared.graph, None, None)
    means, log_deviations = method.means(hidden, block), method.log_deviations(hidden, block)
    generator = seeded()
    drawn = means + torch.randn(30, 4, generator=generator, dtype=torch.float64) * log_deviations.exp()
    expected = reconstruction(drawn, prepared, negative_ratio, generator).item()
    expected += weight * naive_divergence(means, log_deviations) / 30
    assert method.loss(prepared, 0, seeded()).item() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("negative_ratio", [0, 2])
def test_gradients_match_central_differences(negative_ratio):
    method, prepared = make_double(negative_ratio=negative_ratio)
    assert_gradients_match_central_differences(method, lambda: method.loss(prepared, 0, seeded()))


def test_the_embedding_is_the_mean_and_takes_no_draw():
    method, prepared = make_method(dropout=0.5)
    expected = method.means(method.first.embed(prepared.graph), Block(prepared.graph.adjacency))
    assert torch.equal(method.embed(prepared), expected.detach())
    assert torch.equal(method.embed(prepared), method.embed(prepared))
    assert not method.embed(prepared).requires_grad


def test_huge_deviations_stay_finite():
    method, prepared = make_method()
    torch.nn.init.constant_(method.log_deviations.bias, 500.0)
    assert method.loss(prepared, 0, seeded()).isfinite()


@pytest.mark.parametrize("negative_ratio", [0, 2])
def test_the_same_seed_gives_the_same_bytes(negative_ratio):
    def outcome(seed):
        method, prepared = make_method(negative_ratio=negative_ratio)
        return train(method, prepared, seed=seed).losses, method.embed(prepared).numpy().tobytes()

    assert outcome(1) == outcome(1) != outcome(2)


def test_an_embedding_without_width_is_refused():
    with pytest.raises(InputError, match="embedding_width is 0; it must be above 0"):
        create("vgae", 5, seed=0, settings={"embedding_width": 0})
