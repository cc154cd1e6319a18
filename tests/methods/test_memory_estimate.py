"""Too little memory: said before weights are made where it is plain, and by settings that a method has."""

import re
import time

import numpy as np
import pytest
import torch

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
            pytest.raises(InputError, match=r"^out of memory; lower hidden or projection$"),
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


@pytest.mark.parametrize("name", METHODS)
def test_the_estimate_is_the_size_of_the_weights(name):
    method = METHODS[name]
    task = (2, 3) if method.supervised else None
    made = create(name, 12, num_nodes=7, task=task, seed=0)
    expected = sum(weight.numel() * weight.element_size() for weight in made.parameters())
    values = {parameter.name: parameter.default for parameter in parameters(method).values()}
    assert estimates._weight_bytes(method, 12, 7, task, values) == expected


@pytest.mark.parametrize(
    ("name", "settings"), [("dgi", {"hidden": 1024}), ("bgrl", {"embedding_width": 1024}), ("dgi", {})]
)
def test_embeddings_beyond_the_machine_are_refused(name, settings):
    width = (
        settings.get("hidden")
        or settings.get("embedding_width")
        or parameters(METHODS[name])["hidden"].default
    )
    needed = f"{4 * 10**9 * width:,}"
    with pytest.raises(InputError, match=rf"the embeddings alone take {needed} bytes.*; lower hidden"):
        create(name, 4, num_nodes=10**9, seed=0, settings=settings)


def test_weights_beyond_the_machine_are_refused_at_once():
    started = time.perf_counter()
    with pytest.raises(InputError) as caught:
        create("spgcl", 64, seed=0, settings={"hidden": 2**22})
    found = re.fullmatch(
        "out of memory: the weights alone take ([0-9,]+) bytes, and this machine has [0-9,]+; lower hidden",
        str(caught.value),
    )
    # Two layers and the head are square but for the first layer's features.
    assert found and int(found[1].replace(",", "")) > 4 * 2 * 2**44
    assert time.perf_counter() - started < 20
    with pytest.raises(
        InputError, match=r"more bytes than can be counted.*; lower hidden or predictor_width"
    ):
        create("afgrl", 64, seed=0, settings={"hidden": 2**60})
    with pytest.raises(InputError, match=r"the weights alone take .*; lower hidden, projection or widening$"):
        create("grace", 64, seed=0, settings={"widening": 2**32})


@pytest.mark.parametrize(("name", "needed"), [("spectral", "24,000,000"), ("fastrp", "12,000,000")])
def test_methods_without_weights_say_what_they_need_before_they_start(name, needed, monkeypatch):
    monkeypatch.setattr(estimates, "_memory_bytes", lambda: 10**7)
    graph = Graph.from_edges([0, 1], [1, 999], np.ones((1000, 2), np.float32))
    method = create(name, 2, num_nodes=1000, seed=0, settings={"hidden": 1000})
    with pytest.raises(InputError, match=rf"take {needed} bytes, and this machine has 10,000,000; lower hid"):
        method.prepare(graph, torch.device("cpu"))


@pytest.mark.parametrize("diffusion", ["ppr", "heat"])
def test_a_diffusion_beyond_the_machine_is_refused_before_it_starts(diffusion, monkeypatch):
    monkeypatch.setattr(estimates, "_memory_bytes", lambda: 10**9)
    graph = Graph.from_edges([0, 1], [1, 199_999], np.ones((200_000, 2), np.float32))
    settings = {"keep": 100_000, "hidden": 8, "diffusion": diffusion}
    method = create("mvgrl", 2, num_nodes=200_000, seed=0, settings=settings)
    started = time.perf_counter()
    with pytest.raises(
        InputError, match=r"the diffusion take 160,000,000,000 bytes, .* has 1,000,000,000; lower keep$"
    ):
        method.prepare(graph, torch.device("cpu"))
    assert time.perf_counter() - started < 5


def test_a_node_has_weights_of_its_own(monkeypatch):
    monkeypatch.setattr(estimates, "_memory_bytes", lambda: 2**31)
    with pytest.raises(InputError, match=r"4,000,000,000 bytes.* has 2,147,483,648; lower hidden"):
        create("node2vec", 3, num_nodes=10**6, seed=0, settings={"hidden": 500})
