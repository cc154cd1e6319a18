"""Steps over all pairs of nodes: how much work they are, and what is said of it before training."""

import warnings

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from spgcl import Embedder
from spgcl.cli import run
from spgcl.engine import all_pairs
from spgcl.graph import Graph
from spgcl.methods import create
from spgcl.methods.parts import node_contrast as contrast
from spgcl.training import advice as training
from spgcl.training.advice import slow_steps

CPU = torch.device("cpu")
NARROW = {"hidden": 32}


def ring(num_nodes):
    nodes = np.arange(num_nodes)
    features = np.random.default_rng(0).normal(size=(num_nodes, 8)).astype(np.float32)
    return Graph.from_edges(nodes, (nodes + 1) % num_nodes, features)


def made(name, num_nodes, settings):
    method = create(name, 8, num_nodes=num_nodes, seed=0, settings=settings)
    return method, method.prepare(ring(num_nodes), CPU)


def products(name, num_nodes, settings):
    """Products of two numbers in a step's matrix products."""
    method, prepared = made(name, num_nodes, settings)
    # Not known to the counter.
    mapping = {torch.ops.aten.addmm_: lambda _, left, right, **__: 2 * left[0] * left[1] * right[1]}
    with FlopCounterMode(display=False, custom_mapping=mapping) as counter:
        method.loss(prepared, 0, torch.Generator().manual_seed(0)).backward()
    return counter.get_total_flops() / 2


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("grace", NARROW),
        ("gca", NARROW),
        ("graphcl", {**NARROW, "first_view": "edges", "second_view": "edges"}),
        ("gmi", NARROW),
        ("gae", {**NARROW, "embedding_width": 32, "negative_ratio": 0}),
        ("vgae", {**NARROW, "embedding_width": 32, "negative_ratio": 0}),
        ("afgrl", {**NARROW, "predictor_width": 32}),
    ],
)
def test_the_work_over_pairs_is_what_grows_with_the_square_of_the_nodes(name, settings, monkeypatch):
    for module in (all_pairs, contrast):
        monkeypatch.setitem(module.TILE, "cpu", 32)
    monkeypatch.setattr(contrast, "KEPT_BYTES", 0)
    # What grows with the number of nodes is taken away.
    squared = products(name, 512, settings) - 2 * products(name, 256, settings)
    said = create(name, 8, num_nodes=4, seed=0, settings=settings).products_per_pair
    assert squared / (2 * 256**2) / said == pytest.approx(1, rel=0.1)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("spgcl", {}),
        ("dgi", {}),
        ("bgrl", {}),
        ("gae", {"negative_ratio": 2}),
        ("gmi", {"structure_weight": 0}),
        ("gmi", {"rebuilt_rows": 16}),
    ],
)
def test_other_steps_go_over_no_pairs(name, settings):
    assert create(name, 8, num_nodes=4, seed=0, settings=settings).products_per_pair == 0
    assert products(name, 1024, settings) < 2.6 * products(name, 512, settings)


def said_of(name, num_nodes, settings, device=CPU):
    method = create(name, 8, num_nodes=num_nodes, seed=0, settings=settings)
    return slow_steps(method, ring(num_nodes), device)


def test_a_long_step_is_announced_with_its_time(monkeypatch):
    monkeypatch.setattr(training, "_product_rate", lambda: 1e6)
    # 8 x 32 x 20,000^2 products at a million a second.
    hundred = {**NARROW, "steps": 100}
    assert said_of("grace", 20_000, hundred) == (
        "a step goes over all pairs of 20,000 nodes, which takes at least 28 hours here, "
        "and 100 steps 119 days; take spgcl, dgi or bgrl, which go over none"
    )
    assert said_of("grace", 20_000, hundred, torch.device("cuda")) is None
    assert said_of("spgcl", 20_000, NARROW) is None
    monkeypatch.setattr(training, "_product_rate", lambda: 1e11)
    assert said_of("grace", 20_000, hundred) is None


@pytest.mark.parametrize(
    ("name", "settings", "way"),
    [
        ("gmi", {"hidden": 256}, "rebuilt_rows=1000"),
        ("gae", {"embedding_width": 256, "negative_ratio": 0}, "negative_ratio=1"),
        ("vgae", {"embedding_width": 256, "negative_ratio": 0}, "negative_ratio=1"),
    ],
)
def test_a_setting_that_goes_over_fewer_pairs_is_named_and_is_a_way_out(name, settings, way, monkeypatch):
    monkeypatch.setattr(training, "_product_rate", lambda: 1e6)
    assert f"; set {way}, or take spgcl" in (said_of(name, 20_000, settings) or "")
    assert said_of(name, 20_000, {**settings, **dict([way.split("=")])}) is None


def test_the_command_announces_long_steps_too(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(training, "_product_rate", lambda: 1e4)
    monkeypatch.setattr(training, "FEW_PRODUCTS", 0)
    arguments = ["csbm-homophilic", "--method", "grace", "--steps", "1", "--set", "hidden=4"]
    assert run(["fit", *arguments, "--out", str(tmp_path / "run"), "--device", "cpu"]) == 0
    assert "note: a step goes over all pairs of 1,500 nodes" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("seconds", "spoken"), [(10, "10 seconds"), (119, "119 seconds"), (7200, "2 hours"), (400_000, "5 days")]
)
def test_times_are_said_in_the_largest_unit_that_they_have_two_of(seconds, spoken):
    assert training._spoken(seconds) == spoken


def test_small_graphs_are_trained_without_a_measurement(monkeypatch):
    monkeypatch.setattr(training, "_product_rate", lambda: pytest.fail("measured"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Embedder(method="grace", steps=1, **NARROW).fit(ring(50))
    monkeypatch.setattr(training, "FEW_PRODUCTS", 0)
    monkeypatch.setattr(training, "_product_rate", lambda: 1e4)
    with pytest.warns(UserWarning, match="a step goes over all pairs of 50 nodes"):
        Embedder(method="grace", steps=1, **NARROW).fit(ring(50))


def test_the_rate_is_that_of_this_machine():
    assert 1e8 < training._product_rate() < 1e14
