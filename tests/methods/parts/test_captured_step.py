"""The step of fixed shapes against the plain one; on CPU with plain operations in place of the kernels."""

from dataclasses import replace

import kernel_oracles
import pytest
import torch
from graphs import CPU, make_graph, seeded
from made_methods import doubled

from spgcl.engine.device import arithmetic
from spgcl.engine.kernels.layers import Keys
from spgcl.engine.levels import Level
from spgcl.engine.tensors import GraphTensors, SparseMatrix
from spgcl.methods import create
from spgcl.methods.method import Prepared
from spgcl.methods.parts.captured_step import PaddedPool, captured_loss, padded_contrast, padded_pool
from spgcl.methods.parts.pools import neighbourhood_lists
from spgcl.methods.spgcl import SPGCL

SMALL = {"hidden": 6, "seeds": 9, "pool_size": 24, "positives": 3, "negatives": 5, "dropout": 0.0}
SETTINGS = {
    "published-like": {"batch_norm": "affine", "own_positive": True, "head_activation": "prelu"},
    "no-batch-norm": {"batch_norm": "none"},
    "batch-norm-of-the-pool": {"batch_norm": "plain", "batch_norm_rows": "pool"},
    "affine-of-the-pool": {"batch_norm": "affine", "batch_norm_rows": "pool", "activation": "relu"},
    "paper-like": {"anchors": "seeds", "negatives_from": "all", "negative_weight": 1.0, "pool": "set"},
    "one-layer": {"layers": 1, "batch_norm": "affine", "batch_norm_rows": "pool"},
    "three-layers": {"layers": 3, "batch_norm": "affine", "batch_norm_rows": "pool"},
}


@pytest.fixture(
    params=["cpu", pytest.param("cuda", marks=pytest.mark.skipif("not torch.cuda.is_available()"))]
)
def device(request, monkeypatch):
    """Where a step runs: by the kernels on CUDA, by their oracles on CPU."""
    if request.param == "cpu":
        kernel_oracles.use_oracles(monkeypatch)
    return torch.device(request.param)


@pytest.fixture
def oracles(monkeypatch):
    kernel_oracles.use_oracles(monkeypatch)


@pytest.fixture
def same_negatives(oracles, monkeypatch):
    """Negatives that are no random ones: the plain and the padded step draw differently."""

    def columns(height, negatives, total):
        return (7 * torch.arange(height)[:, None] + 3 * torch.arange(negatives)) % total

    monkeypatch.setattr(
        SPGCL, "_drawn", lambda self, total, height, _: columns(height, self.negatives, total)
    )
    monkeypatch.setattr(
        kernel_oracles, "drawn_columns", lambda _, height, negatives, size: columns(height, negatives, size)
    )


def small_graph(*, sparse_features=False):
    return make_graph(60, 30, num_edges=150, sparse_features=sparse_features, seed=3)


def adjacency_on(device):
    return GraphTensors.of(small_graph(), device).adjacency


def in_double(graph, **settings):
    """A method and what it prepared, both in float64, the adjacency too."""
    method = create("spgcl", 30, num_nodes=60, seed=0, settings={**SMALL, **settings}).double()
    tensors = doubled(method.prepare(graph, CPU).graph)
    adjacency = replace(tensors.adjacency, values=tensors.adjacency.values.double())
    return method.train(), Prepared(replace(tensors, adjacency=adjacency))


def plain_loss(method, prepared, seeds, nodes):
    if method.anchors_are_seeds or method.negatives_everywhere:
        return method._contrast(prepared, seeds, nodes, seeded())
    return method._pool_contrast(prepared, nodes, seeded())


def padded_loss(method, prepared, seeds, nodes, padding=0):
    pool = PaddedPool(torch.cat([nodes, nodes[:1].expand(padding)]), torch.tensor(len(nodes)))
    return padded_contrast(method, prepared, seeds, pool, seeded(), Keys(seeded()))


def outcome(method, loss):
    """Loss, gradients and running statistics."""
    loss.backward()
    # A bias before batch norm changes nothing: its gradient is noise in one step and left out in the other.
    gradients = [
        torch.zeros_like(weight) if weight.grad is None else weight.grad for weight in method.parameters()
    ]
    return [loss.detach(), *gradients, *method.buffers()]


@pytest.mark.usefixtures("same_negatives")
@pytest.mark.parametrize("sparse_features", [False, True], ids=["dense-features", "sparse-features"])
@pytest.mark.parametrize("name", SETTINGS)
def test_the_padded_step_is_the_plain_one(name, sparse_features):
    outcomes = []
    seeds = torch.randperm(60, generator=seeded(1))[:9]
    for compute in (plain_loss, padded_loss):
        method, prepared = in_double(small_graph(sparse_features=sparse_features), **SETTINGS[name])
        assert isinstance(prepared.graph.features, SparseMatrix) == sparse_features
        nodes = neighbourhood_lists(prepared.graph.adjacency, seeds, 1)[:24]
        outcomes.append(outcome(method, compute(method, prepared, seeds, nodes)))
    for plain, padded in zip(*outcomes, strict=True):
        torch.testing.assert_close(padded, plain, rtol=1e-9, atol=1e-11)


@pytest.mark.usefixtures("same_negatives")
def test_padding_changes_nothing():
    outcomes = []
    for padding in (0, 7):
        method, prepared = in_double(small_graph(), batch_norm="affine", batch_norm_rows="pool")
        nodes = neighbourhood_lists(prepared.graph.adjacency, torch.arange(9), 1)[:24]
        outcomes.append(outcome(method, padded_loss(method, prepared, torch.arange(9), nodes, padding)))
    for without, with_padding in zip(*outcomes, strict=True):
        torch.testing.assert_close(with_padding, without, rtol=1e-9, atol=1e-11)


def test_only_cuda_takes_this_step():
    method, prepared = in_double(small_graph())
    assert not method.is_static(prepared)


def test_one_switch_leads_to_it(oracles, monkeypatch):
    monkeypatch.setattr("spgcl.methods.spgcl.has_fixed_shapes", lambda *_: True)
    method, prepared = in_double(small_graph(), hops=1)
    assert torch.equal(method.loss(prepared, 0, seeded()), captured_loss(method, prepared, seeded()))


def naive_pairs(method, prepared, seeds, pool):
    """Every anchor with its nearest entries of the pool, from the vectors of all nodes."""
    vectors = method.space(prepared)
    entries = pool.nodes[: int(pool.size)].tolist()
    pairs = set()
    for anchor in seeds.tolist() if method.anchors_are_seeds else entries:
        allowed = [node for node in entries if method.own_positive or node != anchor]
        allowed.sort(key=lambda node: -float(vectors[anchor] @ vectors[node]))
        pairs |= {(anchor, node) for node in allowed[: method.positives]}
    return pairs


@pytest.mark.usefixtures("oracles")
@pytest.mark.parametrize("own_positive", [False, True])
@pytest.mark.parametrize("negatives_from", ["pool", "all"])
@pytest.mark.parametrize("anchors", ["pool", "seeds"])
# Pools that are cut, and pools that are padded.
@pytest.mark.parametrize("pool_size", [24, 150])
def test_observed_pairs_are_those_that_were_selected(pool_size, anchors, negatives_from, own_positive):
    choices = {"anchors": anchors, "negatives_from": negatives_from, "own_positive": own_positive}
    settings = {"hops": 1, "pool_size": pool_size, "batch_norm": "none", **choices}
    method, prepared = in_double(small_graph(), **settings)
    prepared.watching = True
    covered, earlier, overlaps, memory = set(), set(), [], {}
    for seed in range(4):
        captured_loss(method, prepared, seeded(seed))
        keys = Keys(seeded(seed))
        seeds = kernel_oracles.draw_distinct(torch.tensor(60), 9, keys.take())
        pool = padded_pool(prepared.graph.adjacency, seeds, 1, pool_size, keys, as_set=method.pool_as_set)
        assert (pool.size < pool_size) == (pool_size == 150)
        pairs = naive_pairs(method, prepared, seeds, pool)
        found = prepared.memory["pairs"].flatten().tolist()
        assert {(pair // 60, pair % 60) for pair in found if pair >= 0} == pairs
        covered |= {node for _, node in pairs}
        numbers = method.observe(prepared)
        assert numbers["node_cover_ratio"] == pytest.approx(len(covered) / 60)
        overlaps.append(numbers["overlapped_selection_ratio"])
        assert overlaps[-1] == pytest.approx(len(pairs & earlier) / len(pairs))
        earlier = pairs
        # A captured graph keeps writing to the same memory.
        addresses = {name: value.data_ptr() for name, value in prepared.memory.items()}
        assert addresses == (memory or addresses)
        memory = addresses
    assert overlaps[0] == 0 < max(overlaps)


def test_pairs_of_the_plain_step_are_replaced(oracles):
    """A checkpoint that the plain step left holds lists of varying length."""
    method, prepared = in_double(small_graph(), hops=1)
    prepared.watching = True
    method.loss(prepared, 0, seeded())
    covered = prepared.memory["covered"].clone()
    captured_loss(method, prepared, seeded(1))
    assert prepared.memory["pairs"].shape == prepared.memory["earlier_pairs"].shape == (24, 3)
    assert method.observe(prepared)["overlapped_selection_ratio"] == 0
    assert covered.any() and (prepared.memory["covered"] >= covered).all()


@pytest.mark.parametrize("name", ["published-like", "paper-like"])
def test_observing_changes_neither_the_loss_nor_the_draws(name, device):
    settings = {**SMALL, **SETTINGS[name], "dropout": 0.4}
    outcomes = []
    for watching in (False, True):
        method = create("spgcl", 30, num_nodes=60, seed=0, settings=settings).to(device).train()
        prepared = method.prepare(small_graph(), device)
        prepared.watching = watching
        generator = torch.Generator(device).manual_seed(1)
        with arithmetic(device, "float32", deterministic=True):
            loss = captured_loss(method, prepared, generator)
            outcomes.append([*outcome(method, loss), generator.get_state()])
        assert bool(prepared.memory) == watching
    for one, other in zip(*outcomes, strict=True):
        assert torch.equal(one, other)


def test_a_level_of_a_list_with_repeats(device):
    level, indices = Level.of(torch.tensor([7, 2, 7, 5, 2], device=device), 10)
    assert level.nodes.tolist() == [2, 5, 7, -1, -1]
    assert level.mask.tolist() == [1, 1, 1, 0, 0]
    assert indices.tolist() == [2, 0, 2, 1, 0]
    assert level.row_of_node.tolist() == [-1, -1, 0, -1, -1, 1, -1, 2, -1, -1]
    assert int(level.size) == 3


def test_the_inputs_of_a_level_are_its_neighbourhood(device):
    adjacency, nodes = adjacency_on(device), torch.tensor([3, 11], device=device)
    inputs = Level.of(nodes, 60)[0].inputs(adjacency)
    expected = torch.unique(adjacency.select(nodes).columns)
    assert inputs.mask.nonzero().reshape(-1).tolist() == expected.tolist()
    assert inputs.nodes[inputs.nodes >= 0].tolist() == expected.tolist()
    assert int(inputs.size) == len(expected)


def test_a_padded_pool_holds_what_the_lists_hold(device):
    adjacency, seeds = adjacency_on(device), torch.arange(10, device=device)
    lists = torch.bincount(neighbourhood_lists(adjacency, seeds, 2), minlength=60)
    keys = Keys(torch.Generator(device).manual_seed(0))
    found = torch.zeros(60, device=device)
    rounds = 600
    for _ in range(rounds):
        pool = padded_pool(adjacency, seeds, 2, 16, keys, as_set=False)
        assert int(pool.size) == len(pool.nodes) == 16
        counts = torch.bincount(pool.nodes, minlength=60)
        assert (counts <= lists).all()
        found += counts
    expected = rounds * 16 * lists / lists.sum()
    assert (found - expected).abs().max() <= 6 * expected.max().sqrt()


def test_a_pool_of_few_entries_is_padded(device):
    adjacency, seeds = adjacency_on(device), torch.arange(4, device=device)
    reached = torch.unique(neighbourhood_lists(adjacency, seeds, 1)).tolist()
    keys = Keys(torch.Generator(device).manual_seed(0))
    pool = padded_pool(adjacency, seeds, 1, 50, keys, as_set=True)
    assert sorted(pool.nodes[: int(pool.size)].tolist()) == reached
    assert set(pool.nodes.tolist()) == set(reached) and len(pool.nodes) == 50
    assert pool.counted.tolist() == [True] * len(reached) + [False] * (50 - len(reached))
