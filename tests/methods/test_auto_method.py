from dataclasses import replace

import numpy as np
import pytest
import torch
from graphs import CPU, make_graph

import spgcl
from spgcl.datasets.synthetic import contextual_block_model
from spgcl.evaluation import tuned_probe
from spgcl.graph import Graph
from spgcl.methods import create
from spgcl.methods.auto import LENGTH
from spgcl.methods.parts.channels import CHANNELS


def learned(graph, **settings):
    method = create("auto", graph.num_features, seed=0, settings=settings)
    return method, method.prepare(graph, CPU)


def tuned(vectors, dataset):
    return tuned_probe(vectors, dataset.labels, dataset.splits).mean


@pytest.mark.parametrize("signal", [1.5, 2.5])
@pytest.mark.parametrize("homophily", [0.05, 0.5, 0.95])
def test_it_keeps_up_with_the_best_of_features_and_neighbours(homophily, signal):
    dataset = contextual_block_model(
        num_nodes=600,
        num_classes=3,
        average_degree=8,
        homophily=homophily,
        num_features=32,
        signal=signal,
        seed=3,
    )
    rivals = [("raw", {}), ("smoothed", {}), ("smoothed", {"joined": True})]
    scores = [tuned(spgcl.Embedder(name, **given).fit_transform(dataset), dataset) for name, given in rivals]
    assert tuned(spgcl.Embedder("auto").fit_transform(dataset), dataset) >= max(scores) - 1


def test_edges_without_meaning_do_not_hide_the_features():
    dataset = contextual_block_model(
        num_nodes=600, num_classes=2, average_degree=6, homophily=0.5, num_features=128, signal=2.5, seed=1
    )
    scores = [tuned(spgcl.Embedder(name).fit_transform(dataset), dataset) for name in ("auto", "smoothed")]
    assert scores[0] > scores[1] + 5
    method, _ = learned(dataset.graph)
    weights = {name: channel["weight"] for name, channel in method.findings().items()}
    assert max(weights, key=weights.get) == "own"


def test_directions_that_repeat_themselves_are_made_longer():
    dataset = contextual_block_model(
        num_nodes=600, num_classes=2, average_degree=6, homophily=0.5, num_features=128, signal=2.5, seed=1
    )
    vectors = spgcl.Embedder("auto").fit_transform(dataset)
    classes = dataset.labels == 1

    def told_apart(rows):
        unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return float(np.linalg.norm(unit[classes].mean(axis=0) - unit[~classes].mean(axis=0)))

    features = np.asarray(dataset.graph.features)
    assert told_apart(vectors) > 1.2 * told_apart(features - features.mean(axis=0))


def test_vectors_are_at_most_as_wide_as_asked_and_of_one_mean_length():
    graph = make_graph(80, 50, num_edges=300)
    for hidden, width in ((16, 16), (4096, 6 * 50 + 24)):
        method, prepared = learned(graph, hidden=hidden)
        vectors = method.embed(prepared)
        assert vectors.shape == (80, width)
        lengths = torch.linalg.norm(vectors, dim=1)
        # Fewer axes than the channels have hold most of their length.
        assert LENGTH / 2 < float(lengths.mean()) <= LENGTH * 1.001


def test_nothing_is_learned_from_a_second_graph():
    graph = make_graph(80, 12, num_edges=300)
    method, prepared = learned(graph)
    before = {name: value.clone() for name, value in method.state_dict().items()}
    first = method.embed(prepared)
    other = make_graph(70, 12, num_edges=200, seed=5)
    assert method.embed(method.prepare(other, CPU)).shape == (70, first.shape[1])
    assert all(torch.equal(before[name], value) for name, value in method.state_dict().items())
    assert torch.equal(method.embed(method.prepare(graph, CPU)), first)


def test_a_new_node_changes_the_vectors_of_distant_nodes_little():
    dataset = spgcl.load("csbm-homophilic")
    graph = dataset.graph
    model = spgcl.Embedder("auto").fit(dataset)
    sources = np.repeat(np.arange(graph.num_nodes), graph.degrees)
    grown = Graph.from_edges(
        np.append(sources, graph.num_nodes),
        np.append(graph.columns, 0),
        np.vstack([graph.features, graph.features[:1]]),
    )
    before, after = model.transform(graph), model.transform(grown)
    change = np.linalg.norm(after[:-1] - before, axis=1) / np.linalg.norm(before, axis=1)
    assert np.median(change) < 0.01 and len(after) == graph.num_nodes + 1


def test_many_columns_are_reduced_to_axes_first():
    graph = make_graph(100, 1500, num_edges=300, sparse_features=True)
    method, prepared = learned(graph, hidden=32)
    assert prepared.features.shape == (100, 1024)
    assert method.embed(prepared).isfinite().all()


@pytest.mark.parametrize(
    "graph",
    [
        make_graph(12, 8, num_edges=20),
        make_graph(60, 2, num_edges=150),
        Graph.from_edges(
            np.arange(0, 30, 2), np.arange(1, 30, 2), np.random.default_rng(0).random((30, 5), np.float32)
        ),
    ],
    ids=["few nodes", "few columns", "pairs only"],
)
def test_where_halves_make_no_sense_all_channels_count_alike_and_a_note_says_so(graph):
    with pytest.warns(match="all channels count alike"):
        method, prepared = learned(graph)
    assert method.weights.tolist() == pytest.approx([len(CHANNELS) ** -0.5] * len(CHANNELS))
    assert method.findings() == {}
    vectors = method.embed(prepared)
    assert vectors.isfinite().all() and vectors.std() > 0


def test_units_of_measurements_make_no_difference():
    graph = make_graph(100, 6, num_edges=300)
    units = np.array([1e-6, 1e3, 1, 5, 1e5, 0.1], dtype=np.float32)
    one, other = (learned(replace(graph, features=graph.features * factor)) for factor in (1, units))
    first, second = (method.embed(prepared) for method, prepared in (one, other))
    torch.testing.assert_close(first @ first.T, second @ second.T, rtol=1e-2, atol=1e-2)
