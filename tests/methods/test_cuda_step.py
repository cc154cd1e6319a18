"""The recorded step on CUDA: kernels against plain operations, replay against computing."""

from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch

import spgcl
from spgcl.engine.device import arithmetic
from spgcl.engine.kernels import step as kernels
from spgcl.engine.levels import Level, activated, propagated, unit_rows
from spgcl.engine.tensors import GraphTensors
from spgcl.methods import create
from spgcl.methods.method import Prepared
from spgcl.methods.parts.losses import single_pass_contrastive
from spgcl.methods.parts.pools import draw_distinct, neighbourhood_lists, reaching_seeds, top_similar
from spgcl.training.loop import Checkpoint, train
from spgcl.training.step import WARM_UP

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


def on_device(name: str, **settings: Any) -> tuple[Any, Prepared]:
    graph = graph_with_hubs()
    method = create("spgcl", 50, num_nodes=3000, seed=0, settings={**SMALL, **SETTINGS[name], **settings})
    method.to("cuda")
    return method, method.prepare(graph, torch.device("cuda"))


def test_kernels_are_there() -> None:
    assert kernels.available()


@pytest.mark.parametrize("whole", [True, False], ids=["all-rows", "some-rows"])
@pytest.mark.parametrize("width", [5, 128, 200, 203])
def test_propagation_equals_plain(width: int, whole: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = GraphTensors.of(graph_with_hubs(), torch.device("cuda"))
    level, _ = Level.of(torch.tensor([0, 5, 5, 1, 2999, 77], device="cuda"), 3000)
    if whole:
        level = level.read(graph.adjacency)
    inputs = level.read(graph.adjacency)
    results = []
    for fused in (True, False):
        monkeypatch.setattr(kernels, "available", lambda fused=fused: fused)
        dense = torch.randn(3000, width, generator=torch.Generator("cuda").manual_seed(0), device="cuda")
        dense = (dense * inputs.mask[:, None]).requires_grad_()
        out = propagated(graph.adjacency, dense, level, inputs)
        (out * torch.linspace(-1, 1, out.numel(), device="cuda").view_as(out)).sum().backward()
        assert dense.grad is not None
        read = level.read(graph.adjacency)
        assert torch.equal(read.places, read.nodes)
        results.append((out.detach(), dense.grad * inputs.mask[:, None], read.nodes, read.mask, read.size))
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("width", [136, 1024])
def test_rounded_propagation_keeps_ten_bits(
    width: int, scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    adjacency = GraphTensors.of(graph_with_hubs(), torch.device("cuda")).adjacency
    everything = Level.everything(3000, torch.device("cuda"))
    dense = torch.randn(3000, width, generator=torch.Generator("cuda").manual_seed(0), device="cuda") * scale
    exact = propagated(adjacency, dense, everything, everything)
    monkeypatch.setattr(kernels, "HALVED_FROM", 0)
    monkeypatch.setattr(kernels, "HALVED_READS", 0)
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
def test_tiny_numbers_are_rounded_to_numbers(scale: float) -> None:
    """Gradients of saturated scores are as small as a float can be, beside zeros."""
    dense = torch.randn(64, 64, generator=torch.Generator("cuda").manual_seed(0), device="cuda") * scale
    dense[::2] = 0
    halves, largest = kernels.halved(dense)
    # The largest is brought to 1024.
    found = halves.double() * largest.double() / 1024
    assert (found - dense.double()).abs().max() < 0.02 * dense.abs().max() and dense.any()


@pytest.mark.parametrize("poison", [torch.nan, torch.inf])
def test_rounding_hides_nothing(poison: float) -> None:
    dense = torch.ones(8, 8, device="cuda")
    dense[3, 3] = poison
    assert not bool(kernels.halved(dense)[0].isfinite().all())
    zeros, largest = kernels.halved(torch.zeros(8, 8, device="cuda"))
    assert not zeros.any() and not largest


def test_seeds_are_counted_as_listed() -> None:
    adjacency = GraphTensors.of(graph_with_hubs(), torch.device("cuda")).adjacency
    seeds = torch.randperm(3000, device="cuda")[:70]
    for hops in (0, 1, 2, 3):
        listed = torch.bincount(neighbourhood_lists(adjacency, seeds, hops), minlength=3000)
        assert torch.equal(reaching_seeds(adjacency, seeds, hops).long(), listed)
        reached = reaching_seeds(adjacency, seeds, hops, any_seed=True)
        assert torch.equal(reached.long(), listed.clamp(max=1))


@pytest.mark.parametrize("activation", [torch.nn.PReLU, torch.nn.ReLU], ids=["prelu", "relu"])
@pytest.mark.parametrize("norm", ["none", "plain", "affine"])
def test_activation_equals_plain(
    norm: str, activation: type[torch.nn.Module], monkeypatch: pytest.MonkeyPatch
) -> None:
    level, _ = Level.of(torch.randint(500, (300,), device="cuda"), 500)
    results = []
    for fused in (True, False):
        monkeypatch.setattr(kernels, "available", lambda fused=fused: fused)
        torch.manual_seed(0)
        values = torch.randn(300, 70, device="cuda", requires_grad=True)
        bias = torch.randn(70, device="cuda", requires_grad=True)
        batch_norm = torch.nn.BatchNorm1d(70, affine=norm == "affine").cuda() if norm != "none" else None
        if norm == "affine" and batch_norm is not None:
            torch.nn.init.normal_(batch_norm.weight)
            torch.nn.init.normal_(batch_norm.bias)
        active = activation().cuda()
        keys = kernels.Keys(torch.Generator("cuda").manual_seed(0))
        out = activated(values, level, bias=bias, norm=batch_norm, activation=active, dropout=0.0, keys=keys)
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
    keys = kernels.Keys(torch.Generator("cuda").manual_seed(3))
    options: dict[str, Any] = {
        "bias": torch.zeros(100, device="cuda"), "norm": None, "activation": torch.nn.ReLU(),
        "dropout": 0.3, "keys": keys,
    }  # fmt: skip
    out = activated(values, level, **options)
    out.sum().backward()
    out = out.detach()
    assert torch.equal(out, values.grad)
    assert float((out > 0).float().mean()) == pytest.approx(0.7, abs=0.005)
    assert float(out.max()) == pytest.approx(1 / 0.7)
    columns = (out > 0).float().mean(0)
    assert float((columns - 0.7).abs().max()) < 5 * (0.21 / 4000) ** 0.5
    assert not torch.equal(out, activated(values, level, **options))


@pytest.mark.parametrize("total", [3, 30, 5000])
def test_draws_are_distinct_and_uniform_on_cuda(total: int) -> None:
    keys = kernels.Keys(torch.Generator("cuda").manual_seed(0))
    counts = torch.zeros(total, device="cuda")
    rounds = 3000
    for _ in range(rounds):
        values, size = draw_distinct(torch.full((), total, device="cuda"), 8, keys)
        counts.index_add_(0, values[: min(8, total)], torch.ones(min(8, total), device="cuda"))
    assert int(size) == min(8, total)
    assert len(values.unique()) == min(8, total)
    share = min(8, total) / total
    deviation = (rounds * share * (1 - share)) ** 0.5
    assert float((counts - rounds * share).abs().max()) <= 5.5 * deviation + 1e-9


def scrambled(value: Any) -> Any:
    value = value.astype(np.uint32)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        value = (value ^ (value >> np.uint32(shift))) * np.uint32(factor)
    return value ^ (value >> np.uint32(16))


@pytest.mark.parametrize("own", [True, False], ids=["own-positive", "others-only"])
@pytest.mark.parametrize("anchored", [True, False], ids=["anchors-are-the-pool", "anchors-are-seeds"])
def test_contrast_equals_the_equation(own: bool, anchored: bool) -> None:
    width, size, negatives, weight = 90, 70, 11, 7.0
    height = width if anchored else 40
    pool = torch.randint(60, (width,), device="cuda")
    anchors = pool if anchored else torch.randint(60, (height,), device="cuda")
    key = torch.tensor([12345, 99], dtype=torch.int32, device="cuda")
    numbers = np.arange(height * negatives, dtype=np.uint32).reshape(height, negatives)
    random = scrambled(scrambled(numbers + np.uint32(12345)) ^ np.uint32(99)).astype(np.uint64)
    columns = torch.as_tensor((random * size >> np.uint64(32)).astype(np.int64), device="cuda")
    torch.manual_seed(0)
    similarities = torch.rand(height, width, device="cuda", requires_grad=True)
    length = torch.full((), size, device="cuda")
    options = (anchored, 4, negatives, own, weight)
    fused = kernels.Contrast.apply(similarities, anchors, pool, length, key, *options)
    (3 * fused).backward()
    gradient = similarities.grad
    similarities.grad = None
    left_out = torch.arange(width, device="cuda") >= size
    if not own:
        left_out = left_out | (anchors[:, None] == pool[None, :])
    chosen = top_similar(similarities.detach(), 4, left_out)
    counted = torch.arange(height, device="cuda") < size if anchored else None
    plain = single_pass_contrastive(
        similarities.gather(1, chosen),
        similarities.gather(1, columns),
        negative_weight=weight,
        anchors=counted,
    )
    (3 * plain).backward()
    torch.testing.assert_close(fused, plain)
    torch.testing.assert_close(gradient, similarities.grad)


def test_unit_rows_equal_plain() -> None:
    values = torch.randn(50, 70, device="cuda", requires_grad=True)
    weights = torch.randn(50, 70, device="cuda")
    (unit_rows(values) * weights).sum().backward()
    fused, values.grad = values.grad, None
    (torch.nn.functional.normalize(values, dim=1) * weights).sum().backward()
    torch.testing.assert_close(fused, values.grad)


def trained(
    name: str, start: Checkpoint | None = None
) -> tuple[list[float], torch.Tensor, dict[int, Checkpoint]]:
    method, prepared = on_device(name)
    saved: dict[int, Checkpoint] = {}

    def save(checkpoint: Checkpoint) -> None:
        saved[checkpoint.step] = deepcopy(checkpoint)

    with arithmetic(torch.device("cuda"), "float32", deterministic=True):
        history = train(method, prepared, seed=0, start=start, save=save, save_every=0.0)
    return history.losses, method.embed(prepared), saved


@pytest.mark.parametrize("name", list(SETTINGS))
def test_replayed_steps_equal_computed_ones(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    replayed, vectors, _ = trained(name)
    monkeypatch.setattr("spgcl.training.step.WARM_UP", 10**6)
    computed, expected, _ = trained(name)
    assert len(replayed) == SMALL["steps"] > WARM_UP
    assert replayed == computed
    assert torch.equal(vectors, expected)


def test_resuming_goes_on_with_the_same_bytes() -> None:
    losses, vectors, saved = trained("batch-norm-of-the-pool")
    resumed, expected, _ = trained("batch-norm-of-the-pool", start=saved[11])
    assert resumed == losses
    assert torch.equal(vectors, expected)
