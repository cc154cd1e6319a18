"""What every method in METHODS keeps to, those that will be added included."""

import gc
import re
import weakref
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
import torch
from graphs import CPU, make_graph
from made_methods import trained_bytes

from spgcl.datasets import load, random_splits
from spgcl.engine.tensors import SparseMatrix
from spgcl.graph import Graph
from spgcl.methods import METHODS, Supervision, create, parameters
from spgcl.methods.parameters import meanings
from spgcl.runs.fit import describe_source
from spgcl.runs.record import Run, load_checkpoint, load_method, save_checkpoint, save_method
from spgcl.training.loop import train

INDUCTIVE = [name for name, method in METHODS.items() if method.inductive]
TRAINED = [name for name, method in METHODS.items() if "steps" in parameters(method)]
# Methods that draw nothing, and those whose embedding of a node without edges is 0.
SEEDLESS = {"raw", "smoothed", "spectral", "auto"}
EDGES_ALONE = {"spectral"}

# Sizes for a graph of sixty nodes; a method takes those it has. A learning rate this high makes small
# differences visible in a few steps.
TINY = {
    "hidden": 8,
    "steps": 4,
    "learning_rate": 0.05,
    "seeds": 8,
    "hops": 1,
    "pool_size": 20,
    "positives": 3,
    "negatives": 4,
    "dropout": 0.3,
    "walks": 2,
    "walk_length": 6,
    "window": 2,
    "clusters": 8,
    "structure_weight": 1.0,
}
# What a parameter needs to be switched on, where it would be idle at these sizes.
CONTEXT: dict[tuple[str, str], dict[str, object]] = {
    ("afgrl", "clusters"): {"clusters": 4},
    ("afgrl", "clusterings"): {"clusters": 8, "clusterings": 1},
    ("afgrl", "cluster_steps"): {"clusters": 8, "cluster_steps": 1},
    ("mvgrl", "restart"): {"diffusion": "ppr"},
    ("spgcl", "batch_norm_rows"): {"batch_norm": "plain"},
    ("spgcl", "head_input"): {"activation": "prelu"},
    ("spgcl", "hops"): {"pool_size": 0},
    ("spgcl", "pool"): {"pool_size": 0},
}


def tiny(name, **changes):
    known = parameters(METHODS[name])
    return {key: value for key, value in TINY.items() if key in known} | changes


@cache
def small_graph():
    return make_graph(60, num_edges=130, uneven=True)


@cache
def small_labels():
    """Three classes of the small graph's nodes, in two splits."""
    labels = np.random.default_rng(1).integers(0, 3, 60)
    return Supervision.of(labels, random_splits(labels, seed=0, fractions=(0.4, 0.3, 0.3), count=2))


def made(name, graph, supervision, *, seed=0, settings):
    """A method and what it prepared; labels are for the supervised ones."""
    if not METHODS[name].supervised:
        supervision = None
    task = supervision.task if supervision else None
    method = create(
        name, graph.num_features, num_nodes=graph.num_nodes, task=task, seed=seed, settings=settings
    )
    return method, method.prepare(graph, CPU, supervision)


def trained(name):
    method, prepared = made(name, small_graph(), small_labels(), settings=tiny(name))
    history = train(method, prepared, seed=0)
    return method, history, method.embed(prepared)


def outcome(name, *, seed=0, **changes):
    """Everything a user sees of a training, as bytes."""
    method, prepared = made(name, small_graph(), small_labels(), seed=seed, settings=tiny(name, **changes))
    return trained_bytes(method, prepared, seed=seed)


@pytest.mark.parametrize("name", METHODS)
def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(name):
    first = outcome(name, seed=3)
    # Torch's global generator makes no difference.
    torch.rand(5)
    assert outcome(name, seed=3) == first
    losses, embeddings = outcome(name, seed=4)
    assert (embeddings != first[1]) == (name not in SEEDLESS)
    assert losses != first[0] or not losses


@pytest.mark.parametrize("name", METHODS)
def test_the_same_seed_gives_the_same_bytes_with_sparse_features(name):
    graph = make_graph(60, 40, num_edges=130, sparse_features=True)
    results = []
    for seed in (1, 1, 2):
        method, prepared = made(name, graph, small_labels(), settings=tiny(name))
        assert isinstance(prepared.graph.features, SparseMatrix)
        results.append(trained_bytes(method, prepared, seed=seed))
    assert results[0] == results[1] and (results[0] != results[2]) == (name in TRAINED)


@pytest.mark.parametrize("name", TRAINED)
def test_training_continued_from_a_checkpoint_on_disk_gives_the_same_bytes(name, tmp_path):
    method, prepared = made(name, small_graph(), small_labels(), settings=tiny(name))
    train(method, prepared, seed=0, save=partial(save_checkpoint, tmp_path), stop=lambda: True)
    start = load_checkpoint(tmp_path)
    assert start.step == 1
    method, prepared = made(name, small_graph(), small_labels(), settings=tiny(name))
    assert trained_bytes(method, prepared, start=start) == outcome(name)


@pytest.mark.parametrize("name", METHODS)
def test_embeddings_are_finite_float32_rows_for_every_node(name):
    _, history, embeddings = trained(name)
    assert embeddings.dtype == torch.float32 and not embeddings.requires_grad
    assert embeddings.ndim == 2 and len(embeddings) == 60 and embeddings.isfinite().all()
    # The features of the isolated node make its embedding differ from 0.
    assert embeddings[-1].abs().max() > 0 or name in EDGES_ALONE
    assert np.isfinite(history.losses).all()


@pytest.mark.parametrize("name", METHODS)
def test_the_loss_is_finite_and_falls(name):
    dataset = load("csbm-homophilic")
    known = parameters(METHODS[name])
    wanted = {"hidden": 16, "steps": 40, "learning_rate": 0.01, "seeds": 64, "pool_size": 256}
    wanted |= {"predictor_width": 16, "embedding_width": 16, "projection": 16}
    wanted |= {"walks": 2, "walk_length": 10}
    settings = {key: value for key, value in wanted.items() if key in known}
    supervision = Supervision.of(dataset.labels, dataset.splits)
    losses = train(*made(name, dataset.graph, supervision, settings=settings), seed=0).losses
    if not losses:
        pytest.skip(f"{name} trains nothing")
    assert np.isfinite(losses).all()
    first, last = np.array(losses[:5]), np.array(losses[-5:])
    assert last.max() < first.mean()


@pytest.mark.parametrize("name", INDUCTIVE)
def test_permuting_the_nodes_permutes_the_embeddings(name):
    graph = small_graph()
    method, _, embeddings = trained(name)
    order = np.random.default_rng(1).permutation(graph.num_nodes)
    position = np.argsort(order)
    sources = np.repeat(np.arange(graph.num_nodes), graph.degrees)
    permuted = Graph.from_edges(position[sources], position[graph.columns], graph.features[order])
    again = method.embed(method.prepare(permuted, CPU))
    torch.testing.assert_close(again, embeddings[order], rtol=1e-5, atol=1e-6)
    assert not torch.allclose(again, embeddings)


@pytest.mark.parametrize("name", METHODS)
def test_a_saved_method_gives_the_same_bytes_when_loaded(name, tmp_path):
    graph = small_graph()
    method, _, embeddings = trained(name)
    described = describe_source("small.csv", {}, None, graph)
    run = Run("small", name, None, tiny(name), 0, described, "cpu", 1)
    run.supervision = small_labels().record() if METHODS[name].supervised else None
    save_method(tmp_path, method, run)
    loaded = load_method(tmp_path)
    assert type(loaded) is METHODS[name]
    assert loaded.embed(loaded.prepare(graph, CPU)).numpy().tobytes() == embeddings.numpy().tobytes()
    assert {key: value.tolist() for key, value in loaded.state_dict().items()} == {
        key: value.tolist() for key, value in method.state_dict().items()
    }


@pytest.mark.parametrize("name", METHODS)
def test_observing_does_not_change_the_training(name):
    plain = outcome(name)
    method, prepared = made(name, small_graph(), small_labels(), settings=tiny(name))
    seen = []

    def observe(method, prepared):
        method.embed(prepared), method.space(prepared)
        seen.append(method.observe(prepared))
        return seen[-1]

    assert trained_bytes(method, prepared, observe=observe, observe_every=1) == plain
    assert all(np.isfinite(number) for numbers in seen for number in numbers.values())


def other_values(parameter, value):
    """Values that differ from `value`: all other choices, the other truth, or another number."""
    if parameter.choices:
        return [choice for choice in parameter.choices if choice != value]
    if parameter.type is bool:
        return [not value]
    if parameter.type is int:
        return [value + 1]
    if parameter.type is float:
        # A fraction stays below one; a zero has to become positive.
        return [value / 2 if value else 0.1]
    raise AssertionError(f"no rule how to change {parameter}")


CHANGES = [
    pytest.param(name, parameter.name, other, id=f"{name}-{parameter.name}-{other}")
    for name in METHODS
    for parameter in parameters(METHODS[name]).values()
    for other in other_values(
        parameter,
        {**tiny(name), **CONTEXT.get((name, parameter.name), {})}.get(parameter.name, parameter.default),
    )
]


@pytest.mark.parametrize(("name", "parameter", "other"), CHANGES)
def test_every_hyper_parameter_has_an_effect(name, parameter, other):
    context = CONTEXT.get((name, parameter), {})
    assert outcome(name, **{**context, parameter: other}) != outcome(name, **context)


@pytest.mark.parametrize("name", METHODS)
def test_every_hyper_parameter_is_documented(name):
    found = meanings(METHODS[name])
    assert list(found) == list(parameters(METHODS[name]))
    assert all(re.fullmatch(r"\S.{6,}\.", text) for text in found.values())


@pytest.mark.parametrize("name", METHODS)
def test_reading_features_is_declared(name):
    graph = small_graph()
    results = []
    for features in (graph.features, graph.features[:, ::-1].copy()):
        method, prepared = made(name, replace(graph, features=features), small_labels(), settings=tiny(name))
        train(method, prepared, seed=0)
        results.append(method.embed(prepared).numpy().tobytes())
    assert (results[0] != results[1]) == METHODS[name].reads_features


@pytest.mark.parametrize("name", METHODS)
def test_nothing_of_a_training_is_left_behind(name):
    """Memory comes back when the last name for a graph goes, not when the garbage collector runs."""
    gc.collect()
    gc.disable()
    try:
        method, prepared = made(name, small_graph(), small_labels(), settings=tiny(name))
        train(method, prepared, seed=0)
        method.embed(prepared)
        kept = [weakref.ref(method), weakref.ref(prepared.graph.adjacency)]
        del method, prepared
        assert [reference() for reference in kept] == [None, None]
    finally:
        gc.enable()
