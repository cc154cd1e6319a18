"""What is said without labels: both sides of each threshold of the verdict, and the numbers behind it."""

import numpy as np
import pytest
from graphs import make_graph

import spgcl
from spgcl.datasets.synthetic import contextual_block_model
from spgcl.errors import InputError
from spgcl.evaluation import split_half
from spgcl.evaluation.reliability import mean_cosine, vector_reliability
from spgcl.evaluation.verdict import CHANCE, COLLAPSED, DEGREES_COUNT, edges_say, on_vectors, verdict
from spgcl.methods.parts.channels import CHANNELS


def channels(own=0.2, near=0.0, degrees=0.0, deviation=0.0, neighbours=0.0):
    """Channels with these reliabilities; `degrees` is a weight."""
    values = {name: {"reliability": 0.0, "deviation": deviation, "weight": 0.1} for name in CHANNELS}
    values["own"]["reliability"], values["two hops"]["reliability"] = own, near
    values["neighbours"]["reliability"], values["degrees"]["weight"] = neighbours, degrees
    return values


def test_edges_help_if_something_near_is_more_reliable_than_a_nodes_own_features():
    assert verdict(channels(own=0.2, near=0.21))[0].startswith("Edges help")
    assert "less than your features" in verdict(channels(own=0.2, near=0.19, neighbours=0.1))[0]


def test_differences_within_twice_their_deviation_are_too_close_to_tell():
    assert edges_say(channels(own=0.2, near=0.2)) == "unclear"
    assert edges_say(channels(own=0.3, near=0.2, deviation=0.04)) == "unclear"
    assert edges_say(channels(own=0.3, near=0.2, deviation=0.03)) != "unclear"


def test_edges_say_nothing_if_neighbours_are_not_told_apart_from_chance():
    assert edges_say(channels(near=0.1, neighbours=CHANCE)) == "nothing"
    assert edges_say(channels(near=0.1, neighbours=CHANCE + 0.001)) == "less"
    assert edges_say(channels(own=0.3, near=0.1, neighbours=0.05, deviation=0.03)) == "nothing"
    assert verdict(channels(near=0.1))[0].startswith("Your edges say nothing about your features")


def test_below_chance_nothing_is_claimed():
    assert "little to learn" in verdict(channels(own=CHANCE, near=0.0))[0]
    assert "little to learn" not in verdict(channels(own=CHANCE + 0.001, near=0.0))[0]
    assert "little to learn" in verdict(channels(own=0.2, near=0.2, deviation=0.1))[0]
    assert "little to learn" not in verdict(channels(own=0.2, near=0.2, deviation=0.09))[0]


def test_structure_is_named_from_a_weight_on():
    assert any("Structure" in line for line in verdict(channels(near=0.5, degrees=DEGREES_COUNT)))
    assert not any("Structure" in line for line in verdict(channels(near=0.5, degrees=DEGREES_COUNT - 1e-6)))


def test_homophilic_and_random_graphs_are_told_apart():
    homophilic = contextual_block_model(
        num_nodes=500, num_classes=3, average_degree=8, homophily=0.9, num_features=32, signal=2.5, seed=0
    )
    found = split_half(homophilic)
    assert found["verdict"] == verdict(found["channels"])
    assert found["verdict"][0].startswith("Edges help")
    shuffled = homophilic.graph.with_features(
        homophilic.graph.features[np.random.default_rng(0).permutation(homophilic.graph.num_nodes)]
    )
    assert split_half(shuffled)["verdict"][0].startswith("Your edges say nothing")
    weights = [channel["weight"] for channel in found["channels"].values()]
    assert np.square(weights).sum() == pytest.approx(1, abs=1e-3)


def test_the_same_seed_gives_the_same_numbers_and_auto_records_them():
    dataset = spgcl.load("csbm-heterophilic")
    model = spgcl.Embedder("auto").fit(dataset)
    assert model.method_.findings() == split_half(dataset)["channels"] == split_half(dataset)["channels"]
    assert split_half(dataset, seed=1) != split_half(dataset)


def test_small_graphs_get_words_instead_of_numbers():
    found = split_half(make_graph(12, 8, num_edges=20))
    assert found["channels"] == {} and "20 nodes" in found["verdict"][0]
    with pytest.raises(InputError, match="repeats"):
        split_half(make_graph(40, 8, num_edges=90), repeats=0)


def test_vectors_have_a_reliability_if_their_method_can_embed_the_halves():
    dataset = spgcl.load("csbm-homophilic")
    found = {}
    for name in ("auto", "raw", "fastrp"):
        method = spgcl.Embedder(name).fit(dataset).method_
        found[name] = vector_reliability(method, dataset.graph, repeats=2)
    assert found["fastrp"] is None
    assert found["auto"]["reliability"] > found["raw"]["reliability"] + 0.02


def test_the_mean_cosine_of_two_nodes_is_that_of_a_naive_loop():
    rows = np.random.default_rng(0).normal(size=(12, 5)).astype(np.float32)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    wanted = np.mean([unit[i] @ unit[j] for i in range(12) for j in range(12) if i != j])
    assert mean_cosine(rows) == pytest.approx(wanted, abs=1e-4)
    assert mean_cosine(np.full((12, 5), 3.0, np.float32)) == 1


def test_vectors_that_are_nearly_all_equal_are_named():
    assert "collapsed" in on_vectors(COLLAPSED)[0]
    assert on_vectors(COLLAPSED - 1e-4) == []
