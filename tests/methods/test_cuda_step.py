"""The captured step on CUDA: kernels against plain operations, replayed steps against computed ones."""

from copy import deepcopy
from typing import Any

import kernel_oracles
import numpy as np
import pytest
import torch
from graphs import make_graph

import spgcl
from spgcl.engine.device import arithmetic
from spgcl.engine.kernels import layers, sparse
from spgcl.engine.kernels.step import available
from spgcl.engine.levels import Level, propagated
from spgcl.engine.tensors import GraphTensors
from spgcl.methods import create
from spgcl.methods.method import Method, Prepared
from spgcl.methods.parts.pools import neighbourhood_lists
from spgcl.training.loop import History, train
from spgcl.training.step import WARM_UP, Checkpoint

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")

SETTINGS: dict[str, dict[str, Any]] = {
    "published-like": {"batch_norm": "affine", "own_positive": True, "head_activation": "prelu"},
    "no-batch-norm": {"batch_norm": "none"},
    "batch-norm-of-the-pool": {"batch_norm": "affine", "batch_norm_rows": "pool"},
    "paper-like": {"anchors": "seeds", "negatives_from": "all", "negative_weight": 1.0, "pool": "set"},
}
SMALL = {"hidden": 70, "seeds": 40, "pool_size": 64, "positives": 3, "negatives": 9, "steps": 20}


def graph_with_hubs() -> spgcl.Graph:
    """A graph with some nodes of more than a thousand neighbours and some without any."""
    generator = np.random.default_rng(0)
    hubs = np.stack([np.repeat([0, 1, 2], 1500), generator.integers(0, 2900, 4500)], axis=1)
    edges = np.concatenate([generator.integers(0, 2900, size=(6000, 2)), hubs])
    features = generator.random((3000, 50), dtype=np.float32)
    return spgcl.Graph.of((edges, features * (generator.random((3000, 50)) < 0.015)))


def on_device(name: str, graph: spgcl.Graph | None = None, **settings: Any) -> tuple[Any, Prepared]:
    graph = graph or graph_with_hubs()
    method = create(
        "spgcl", 50, num_nodes=graph.num_nodes, seed=0, settings={**SMALL, **SETTINGS[name], **settings}
    )
    method.to("cuda")
    return method, method.prepare(graph, torch.device("cuda"))


def test_kernels_are_there() -> None:
    assert available()


@pytest.mark.parametrize("whole", [True, False], ids=["all-rows", "some-rows"])
@pytest.mark.parametrize("width", [5, 128, 200, 203])
def test_propagation_equals_plain(width: int, whole: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = GraphTensors.of(graph_with_hubs(), torch.device("cuda"))
    level, _ = Level.of(torch.tensor([0, 5, 5, 1, 2999, 77], device="cuda"), 3000)
    if whole:
        level = level.inputs(graph.adjacency)
    inputs = level.inputs(graph.adjacency)
    results = []
    for by_kernels in (True, False):
        if not by_kernels:
            kernel_oracles.use_oracles(monkeypatch)
        dense = torch.randn(3000, width, generator=torch.Generator("cuda").manual_seed(0), device="cuda")
        dense = (dense * inputs.mask[:, None]).requires_grad_()
        out = propagated(graph.adjacency, dense, level, inputs)
        (out * torch.linspace(-1, 1, out.numel(), device="cuda").view_as(out)).sum().backward()
        assert dense.grad is not None
        read = level.inputs(graph.adjacency)
        assert torch.equal(read.row_of_node, read.nodes)
        results.append((out.detach(), dense.grad * inputs.mask[:, None], read.nodes, read.mask, read.size))
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("width", [136, 1024])
def test_propagation_in_float16_keeps_ten_bits(
    width: int, scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    adjacency = GraphTensors.of(graph_with_hubs(), torch.device("cuda")).adjacency
    everything = Level.everything(3000, torch.device("cuda"))
    dense = torch.randn(3000, width, generator=torch.Generator("cuda").manual_seed(0), device="cuda") * scale
    exact = propagated(adjacency, dense, everything, everything)
    monkeypatch.setattr(sparse, "FLOAT16_FROM", 0)
    monkeypatch.setattr(sparse, "FLOAT16_READS", 0)
    with arithmetic(torch.device("cuda"), "float32"):
        assert torch.equal(propagated(adjacency, dense, everything, everything), exact)
    with arithmetic(torch.device("cuda"), "tf32"):
        rounded = propagated(adjacency, dense, everything, everything)
    assert not torch.equal(rounded, exact)
    # An entry is off by 2**-11 of itself at most, tiny ones by what is lost so far below the largest.
    errors = dense.abs() * 2**-11 + dense.abs().max() * 2**-34
    bound = propagated(adjacency, errors, everything, everything)
    assert bool(((rounded - exact).abs() <= 1.01 * bound).all())


@pytest.mark.parametrize("scale", [1e-33, 1e-36, 1e-39])
def test_tiny_numbers_stay_finite_in_float16(scale: float) -> None:
    """Gradients of saturated scores are as small as a float can be, and others are zero."""
    dense = torch.randn(64, 64, generator=torch.Generator("cuda").manual_seed(0), device="cuda") * scale
    dense[::2] = 0
    halves, largest = sparse.scaled_float16(dense)
    # The largest is brought to 1024.
    found = halves.double() * largest.double() / 1024
    assert (found - dense.double()).abs().max() < 0.02 * dense.abs().max() and dense.any()


@pytest.mark.parametrize("poison", [torch.nan, torch.inf])
def test_float16_keeps_nan_and_infinity(poison: float) -> None:
    dense = torch.ones(8, 8, device="cuda")
    dense[3, 3] = poison
    assert not bool(sparse.scaled_float16(dense)[0].isfinite().all())
    zeros, largest = sparse.scaled_float16(torch.zeros(8, 8, device="cuda"))
    assert not zeros.any() and not largest


def test_seeds_are_counted_as_listed() -> None:
    adjacency = GraphTensors.of(graph_with_hubs(), torch.device("cuda")).adjacency
    seeds = torch.randperm(3000, device="cuda")[:70]
    pieces, columns = adjacency.transposed.pattern.pieces, adjacency.transposed.columns
    for hops in (0, 1, 2, 3):
        listed = torch.bincount(neighbourhood_lists(adjacency, seeds, hops), minlength=3000)
        for any_seed, expected in ((False, listed), (True, listed.clamp(max=1))):
            options = {"num_nodes": 3000, "any_seed": any_seed}
            found = sparse.count_reaching_seeds(pieces, columns, seeds, hops, **options)
            assert torch.equal(found.long(), expected)
            plain = kernel_oracles.count_reaching_seeds(pieces, columns, seeds, hops, **options)
            assert torch.equal(found, plain)


@pytest.mark.parametrize("activation", [torch.nn.PReLU, torch.nn.ReLU], ids=["prelu", "relu"])
@pytest.mark.parametrize("norm", ["none", "plain", "affine"])
def test_activation_equals_plain(norm: str, activation: type[torch.nn.Module]) -> None:
    level, _ = Level.of(torch.randint(500, (300,), device="cuda"), 500)
    results = []
    for activated in (layers.activated, kernel_oracles.activated):
        torch.manual_seed(0)
        values = torch.randn(300, 70, device="cuda", requires_grad=True)
        bias = torch.randn(70, device="cuda", requires_grad=True)
        batch_norm = torch.nn.BatchNorm1d(70, affine=norm == "affine").cuda() if norm != "none" else None
        if norm == "affine" and batch_norm is not None:
            torch.nn.init.normal_(batch_norm.weight)
            torch.nn.init.normal_(batch_norm.bias)
        active = activation().cuda()
        keys = layers.Keys(torch.Generator("cuda").manual_seed(0))
        options = {"bias": bias, "norm": batch_norm, "activation": active, "keys": keys}
        out = activated(values, level.mask, level.size, **options)
        (out * torch.linspace(-1, 1, out.numel(), device="cuda").view_as(out)).sum().backward()
        assert values.grad is not None
        trained = [*active.parameters(), *(batch_norm.parameters() if batch_norm else [bias])]
        running = [*batch_norm.buffers()] if batch_norm else []
        gradients = [weight.grad for weight in trained if weight.grad is not None]
        assert len(gradients) == len(trained)
        results.append([out.detach(), values.grad * level.mask[:, None], *gradients, *running])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)


def test_dropout_meets_its_rate_and_goes_back_the_same_way() -> None:
    level = Level.everything(4000, torch.device("cuda"))
    values = torch.ones(4000, 100, device="cuda", requires_grad=True)
    keys = layers.Keys(torch.Generator("cuda").manual_seed(3))
    options: dict[str, Any] = {"activation": torch.nn.ReLU(), "dropout": 0.3, "keys": keys}
    options["bias"] = torch.zeros(100, device="cuda")
    out = layers.activated(values, level.mask, level.size, **options)
    out.sum().backward()
    out = out.detach()
    assert torch.equal(out, values.grad)
    assert float((out > 0).float().mean()) == pytest.approx(0.7, abs=0.005)
    assert float(out.max()) == pytest.approx(1 / 0.7)
    columns = (out > 0).float().mean(0)
    assert float((columns - 0.7).abs().max()) < 5 * (0.21 / 4000) ** 0.5
    assert not torch.equal(out, layers.activated(values, level.mask, level.size, **options))


@pytest.mark.parametrize("total", [3, 8, 30, 100, 5000])
def test_draws_are_distinct_and_uniform_on_cuda(total: int) -> None:
    keys = layers.Keys(torch.Generator("cuda").manual_seed(0))
    counts = torch.zeros(total, device="cuda")
    rounds, size = 3000, min(8, total)
    for _ in range(rounds):
        values = layers.draw_distinct(torch.full((), total, device="cuda"), 8, keys.take())
        counts.index_add_(0, values[:size], torch.ones(size, device="cuda"))
        assert (values[size:] == values[0]).all()
    assert len(values) == 8 and len(values.unique()) == size
    fraction = size / total
    deviation = (rounds * fraction * (1 - fraction)) ** 0.5
    assert float((counts - rounds * fraction).abs().max()) <= 5.5 * deviation + 1e-9


@pytest.mark.parametrize("own", [True, False], ids=["own-positive", "others-only"])
@pytest.mark.parametrize("anchored", [True, False], ids=["anchors-are-the-pool", "anchors-are-seeds"])
def test_contrast_equals_the_equation(own: bool, anchored: bool) -> None:
    width, size = 90, torch.full((), 70, device="cuda")
    height = width if anchored else 40
    pool = torch.randint(60, (width,), device="cuda")
    anchors = pool if anchored else torch.randint(60, (height,), device="cuda")
    key = torch.tensor([12345, 99], dtype=torch.int32, device="cuda")
    options: dict[str, Any] = {"anchors_are_pool": anchored, "own_positive": own}
    options |= {"positives": 4, "negatives": 11, "negative_weight": 7.0}
    results = []
    for contrast in (layers.contrast, kernel_oracles.contrast):
        torch.manual_seed(0)
        similarities = torch.rand(height, width, device="cuda", requires_grad=True)
        loss = contrast(similarities, anchors, pool, size, key, **options)
        (3 * loss).backward()
        results.append((loss.detach(), similarities.grad))
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other)


def test_unit_rows_equal_plain() -> None:
    values = torch.randn(50, 70, device="cuda", requires_grad=True)
    weights = torch.randn(50, 70, device="cuda")
    (layers.unit_rows(values) * weights).sum().backward()
    fused, values.grad = values.grad, None
    (torch.nn.functional.normalize(values, dim=1) * weights).sum().backward()
    torch.testing.assert_close(fused, values.grad)


def trained(
    name: str, start: Checkpoint | None = None, graph: spgcl.Graph | None = None, *, observe_every: int = 0
) -> tuple[History, torch.Tensor, dict[int, Checkpoint]]:
    method, prepared = on_device(name, graph)
    saved: dict[int, Checkpoint] = {}

    def save(checkpoint: Checkpoint) -> None:
        saved[checkpoint.step] = deepcopy(checkpoint)

    def observe(method: Method, prepared: Prepared) -> dict[str, float]:
        return method.observe(prepared)

    options: dict[str, Any] = {"save": save, "save_every": 0.0}
    options |= {"observe": observe, "observe_every": observe_every}
    with arithmetic(torch.device("cuda"), "float32", deterministic=True):
        history = train(method, prepared, seed=0, start=start, **options)
    assert method.is_static(prepared)
    return history, method.embed(prepared), saved


@pytest.mark.parametrize("observe_every", [0, 1], ids=["unobserved", "observed"])
@pytest.mark.parametrize("name", list(SETTINGS))
def test_replayed_steps_equal_computed_ones(
    name: str, observe_every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    replayed, vectors, _ = trained(name, observe_every=observe_every)
    monkeypatch.setattr("spgcl.training.step.WARM_UP", 10**6)
    computed, expected, _ = trained(name, observe_every=observe_every)
    assert len(replayed.losses) == SMALL["steps"] > WARM_UP
    assert replayed.losses == computed.losses
    assert replayed.observations == computed.observations
    assert torch.equal(vectors, expected)


@pytest.mark.parametrize("name", list(SETTINGS))
def test_observing_does_not_change_what_is_trained(name: str) -> None:
    plain, vectors, _ = trained(name)
    observed, expected, _ = trained(name, observe_every=3)
    assert not plain.observations
    assert [record["step"] for record in observed.observations] == [*range(0, 20, 3), 20]
    assert observed.losses == plain.losses
    assert torch.equal(vectors, expected)


@pytest.mark.parametrize("name", list(SETTINGS))
def test_observed_ratios_are_fractions(name: str) -> None:
    # So small that many pairs are selected again.
    history, _, _ = trained(name, graph=make_graph(70, 50, num_edges=200), observe_every=1)
    cover = [record["node_cover_ratio"] for record in history.observations[1:]]
    overlap = [record["overlapped_selection_ratio"] for record in history.observations[1:]]
    assert cover == sorted(cover) and 0 < cover[0] < cover[-1] <= 1
    assert overlap[0] == 0 and all(0 < ratio <= 1 for ratio in overlap[1:])


@pytest.mark.parametrize("observe_every", [0, 1], ids=["unobserved", "observed"])
def test_resuming_goes_on_with_the_same_bytes(observe_every: int) -> None:
    history, vectors, saved = trained("batch-norm-of-the-pool", observe_every=observe_every)
    resumed, expected, _ = trained("batch-norm-of-the-pool", saved[11], observe_every=observe_every)
    assert resumed.losses == history.losses
    assert resumed.observations == history.observations
    assert torch.equal(vectors, expected)
