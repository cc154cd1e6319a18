"""Too little memory: refused before weights are made, and explained by settings that a method has."""

import numpy as np
import pytest
import torch
from graphs import CPU

from spgcl.errors import InputError
from spgcl.graph import Graph
from spgcl.methods import METHODS, create, parameters
from spgcl.methods import memory as estimates


@pytest.mark.parametrize("name", METHODS)
def test_advice_names_settings_that_the_method_has(name):
    advice = estimates.memory_advice(METHODS[name], {})
    words = advice.replace(",", " ").replace("=", " ").split()
    sizing = {key for key, parameter in parameters(METHODS[name]).items() if parameter.sizes_memory}
    assert sizing.intersection(words) or "smaller graph" in advice


def test_the_advice_is_given_when_memory_runs_out():
    for error in (MemoryError(), torch.OutOfMemoryError("CUDA"), RuntimeError("can't allocate memory: 7")):
        with (
            pytest.raises(InputError, match=r"hidden or projection$"),
            estimates.explained_memory(METHODS["grace"], {"hidden": 256}),
        ):
            raise error
    with pytest.raises(RuntimeError, match="another"), estimates.explained_memory(METHODS["grace"], {}):
        raise RuntimeError("another")


@pytest.mark.parametrize(
    ("name", "settings", "advice"),
    [
        ("gae", {"hidden": 512, "negative_ratio": 500}, "lower negative_ratio"),
        ("afgrl", {"clusterings": 900, "clusters": 2000}, "lower clusters or clusterings"),
        ("deepwalk", {"window": 100}, "lower window"),
        ("spgcl", {"hidden": 4096}, "lower hidden, or set batch_norm_rows=pool"),
        ("spgcl", {"hidden": 4096, "batch_norm_rows": "pool"}, "lower hidden"),
        (
            "spgcl",
            {"hidden": 4096, "batch_norm_rows": "pool", "pool_size": 0},
            "lower hidden, or set pool_size=256, as 0 is no limit",
        ),
        ("grace", {"hidden": 128, "steps": 10**6}, "lower hidden or projection"),
    ],
)
def test_settings_above_their_defaults_are_lowered_first(name, settings, advice):
    assert estimates.memory_advice(METHODS[name], settings) == advice


@pytest.mark.parametrize(
    ("name", "settings", "others", "width", "advice"),
    [
        ("dgi", {}, 10**9, 1024, "lower hidden"),
        ("dgi", {"hidden": 2048}, 10**9, 2048, "lower hidden"),
        ("bgrl", {"embedding_width": 2048}, 10**9, 512, "lower hidden"),
        ("spgcl", {"hidden": 2**22}, 2**22, 2**22, "lower hidden"),
        ("afgrl", {"hidden": 2**60}, 2**60, 2**60, "lower hidden"),
        ("afgrl", {"predictor_width": 2**30}, 2**30, 2**30, "lower predictor_width"),
        ("grace", {"widening": 2**32}, 2**40, 2**40, "lower hidden or widening"),
        ("node2vec", {"hidden": 500}, 10**9, 500, "lower hidden"),
    ],
)
def test_a_layer_beyond_the_machine_is_refused_before_it_is_made(name, settings, others, width, advice):
    """Outputs for all nodes, or square weights; a method without layers has a row per node alone."""
    num_nodes = others if others == 10**9 else 0
    with pytest.raises(InputError, match=f" {4 * width * others:,} bytes.*; {advice}$"):
        create(name, 4, num_nodes=num_nodes, seed=0, settings=settings)


def test_wide_features_count_for_methods_that_read_them():
    with pytest.raises(InputError, match="lower hidden"):
        create("dgi", 10**12, seed=0)
    create("deepwalk", 10**12, num_nodes=3, seed=0)


@pytest.mark.parametrize(("name", "needed"), [("spectral", "24,000,000"), ("fastrp", "12,000,000")])
def test_methods_without_weights_say_what_they_need_before_they_start(name, needed, monkeypatch):
    monkeypatch.setattr(estimates, "machine_memory", lambda: 10**7)
    graph = Graph.from_edges([0, 1], [1, 999], np.ones((1000, 2), np.float32))
    method = create(name, 2, num_nodes=1000, seed=0, settings={"hidden": 1000})
    with pytest.raises(InputError, match=rf"{needed} bytes, .* 10,000,000; lower hidden$"):
        method.prepare(graph, CPU)


@pytest.mark.parametrize("diffusion", ["ppr", "heat"])
def test_a_diffusion_beyond_the_machine_is_refused_before_it_starts(diffusion, monkeypatch):
    monkeypatch.setattr(estimates, "machine_memory", lambda: 10**9)
    graph = Graph.from_edges([0, 1], [1, 199_999], np.ones((200_000, 2), np.float32))
    settings = {"keep": 100_000, "hidden": 8, "diffusion": diffusion}
    method = create("mvgrl", 2, num_nodes=200_000, seed=0, settings=settings)
    with pytest.raises(InputError, match=r"diffusion .*160,000,000,000 bytes, .* 1,000,000,000; lower keep$"):
        method.prepare(graph, CPU)
