"""Notes on a training: the work of steps over all pairs of nodes, and what to do about bad numbers."""

import warnings

import numpy as np
import pytest
import torch
from graphs import CPU, seeded
from torch.utils.flop_counter import FlopCounterMode

from spgcl import Embedder
from spgcl.cli import run
from spgcl.engine import all_pairs
from spgcl.errors import InputError
from spgcl.graph import Graph
from spgcl.methods import create
from spgcl.methods.parts import node_contrast as contrast
from spgcl.training import advice
from spgcl.training.advice import slow_steps

NARROW = {"hidden": 32}


def ring(num_nodes):
    nodes = np.arange(num_nodes)
    features = np.random.default_rng(0).normal(size=(num_nodes, 8)).astype(np.float32)
    return Graph.from_edges(nodes, (nodes + 1) % num_nodes, features)


def made(name, settings):
    return create(name, 8, num_nodes=4, seed=0, settings=settings)


def products(name, num_nodes, settings):
    """Multiply-adds in a step's matrix products."""
    method = create(name, 8, num_nodes=num_nodes, seed=0, settings=settings)
    prepared = method.prepare(ring(num_nodes), CPU)
    # Not known to the counter.
    mapping = {torch.ops.aten.addmm_: lambda _, left, right, **__: 2 * left[0] * left[1] * right[1]}
    with FlopCounterMode(display=False, custom_mapping=mapping) as counter:
        method.loss(prepared, 0, seeded(0)).backward()
    return counter.get_total_flops() / 2


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("grace", NARROW),
        ("gca", NARROW),
        ("graphcl", {**NARROW, "first_view": "edges", "second_view": "edges"}),
        ("gmi", {**NARROW, "structure_weight": 1.0}),
        ("gae", {**NARROW, "embedding_width": 32, "negative_ratio": 0}),
        ("vgae", {**NARROW, "embedding_width": 32, "negative_ratio": 0}),
        ("afgrl", {**NARROW, "predictor_width": 32}),
    ],
)
def test_the_work_over_pairs_grows_with_the_square_of_the_nodes(name, settings, monkeypatch):
    for module in (all_pairs, contrast):
        monkeypatch.setitem(module.TILE, "cpu", 32)
    monkeypatch.setattr(contrast, "KEPT_BYTES", 0)
    # Without the part that grows with the number of nodes.
    squared = products(name, 512, settings) - 2 * products(name, 256, settings)
    assert squared / (2 * 256**2) / made(name, settings).products_per_pair == pytest.approx(1, rel=0.1)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("spgcl", {}),
        ("dgi", {}),
        ("bgrl", {}),
        ("gae", {"negative_ratio": 2}),
        ("gmi", {"structure_weight": 0}),
        ("gmi", {"structure_weight": 1.0, "rebuilt_rows": 16}),
    ],
)
def test_other_steps_go_over_no_pairs(name, settings):
    assert made(name, settings).products_per_pair == 0
    assert products(name, 1024, settings) < 2.6 * products(name, 512, settings)


def test_long_steps_on_the_processor_are_noted():
    grace, long = made("grace", {**NARROW, "steps": 300}), ring(50_000)
    assert grace.products_per_pair * 40_000**2 < advice.LONG_STEP < grace.products_per_pair * 50_000**2
    found = slow_steps(grace, long, CPU)
    assert "300 steps" in found and "50,000 nodes" in found
    assert slow_steps(grace, ring(40_000), CPU) is None
    assert slow_steps(grace, long, torch.device("cuda")) is None
    assert slow_steps(made("spgcl", NARROW), long, CPU) is None


@pytest.mark.parametrize(
    ("name", "settings", "change"),
    [
        ("gmi", {"hidden": 256, "structure_weight": 1.0}, "rebuilt_rows=1000"),
        ("gae", {"embedding_width": 256, "negative_ratio": 0}, "negative_ratio=1"),
        ("vgae", {"embedding_width": 256, "negative_ratio": 0}, "negative_ratio=1"),
    ],
)
def test_the_note_names_a_setting_that_avoids_all_pairs(name, settings, change):
    graph = ring(50_000)
    assert change in slow_steps(made(name, settings), graph, CPU)
    assert slow_steps(made(name, {**settings, **dict([change.split("=")])}), graph, CPU) is None


def test_python_and_the_command_line_note_long_steps(monkeypatch, tmp_path, capsys):
    model = Embedder(method="grace", steps=1, device="cpu", **NARROW)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(ring(50))
    monkeypatch.setattr(advice, "LONG_STEP", 1)
    with pytest.warns(UserWarning, match="50 nodes"):
        model.fit(ring(50))
    arguments = ["csbm-homophilic", "--method", "grace", "--steps", "1", "--set", "hidden=4"]
    assert run(["fit", *arguments, "--out", str(tmp_path / "run"), "--device", "cpu"]) == 0
    assert "all pairs of 1,500 nodes" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "remedies"),
    [
        ("dgi", ["learning_rate (now 0.0003)", "features"]),
        ("node2vec", ["learning_rate (now 0.01)"]),
        ("raw", ["features"]),
        ("spectral", ["edges"]),
        ("fastrp", ["first_weight or second_weight or third_weight or fourth_weight or degree_penalty"]),
    ],
)
def test_advice_on_numbers_that_are_not_finite_names_what_the_method_has(name, remedies):
    with pytest.raises(InputError) as caught:
        advice.require_finite(np.array([[0.0, np.inf]], dtype=np.float32), made(name, {}))
    message = str(caught.value)
    assert all(remedy in message for remedy in remedies)
    assert ("features" in message) == ("features" in remedies)
