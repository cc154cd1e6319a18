"""The path of fixed shapes against the plain one: the same draws give the same loss and gradients."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import spgcl
from spgcl.engine.kernels.step import Keys
from spgcl.engine.levels import Level
from spgcl.engine.tensors import GraphTensors
from spgcl.methods import create
from spgcl.methods.method import Prepared
from spgcl.methods.parts.pools import Pool, draw_distinct, neighbourhood_lists, padded_pool, reaching_seeds
from spgcl.methods.spgcl import SPGCL

SETTINGS: dict[str, dict[str, Any]] = {
    "published-like": {"batch_norm": "affine", "own_positive": True, "head_activation": "prelu"},
    "no-batch-norm": {"batch_norm": "none"},
    "batch-norm-of-the-pool": {"batch_norm": "plain", "batch_norm_rows": "pool"},
    "affine-of-the-pool": {"batch_norm": "affine", "batch_norm_rows": "pool", "activation": "relu"},
    "paper-like": {"anchors": "seeds", "negatives_from": "all", "negative_weight": 1.0, "pool": "set"},
    "one-layer": {"layers": 1, "batch_norm": "affine", "batch_norm_rows": "pool"},
    "three-layers": {"layers": 3, "batch_norm": "affine", "batch_norm_rows": "pool"},
}


class DrawnPool(Pool):
    """A pool whose negatives are the same each time: padded and plain draws use the generator differently."""

    def draw(self, shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
        del generator
        rows, columns = (torch.arange(length) for length in shape)
        return (7 * rows[:, None] + 3 * columns) % (len(self.nodes) if self.size is None else self.size)


def doubled(graph: GraphTensors) -> GraphTensors:
    """The graph in double precision."""
    adjacency = replace(graph.adjacency, values=graph.adjacency.values.double())
    features = graph.features
    if isinstance(features, torch.Tensor):
        return replace(graph, features=features.double(), adjacency=adjacency)
    return replace(graph, features=replace(features, values=features.values.double()), adjacency=adjacency)


def small_graph(*, sparse: bool) -> spgcl.Graph:
    generator = np.random.default_rng(3)
    edges = generator.integers(0, 60, size=(150, 2))
    features = generator.random((60, 30))
    if sparse:
        features *= generator.random((60, 30)) < 0.05
    return spgcl.Graph.of((edges, features.astype(np.float32)))


def loss_and_gradients(
    method: SPGCL, graph: GraphTensors, seeds: torch.Tensor, pool: Pool, *, static: bool
) -> tuple[float, list[torch.Tensor], list[torch.Tensor]]:
    method.train()
    method.zero_grad()
    generator = torch.Generator().manual_seed(5)
    loss = method._contrast(Prepared(graph), seeds, pool, generator, Keys(generator) if static else None)
    loss.backward()  # type: ignore[no-untyped-call]
    # A bias before batch norm changes nothing: its gradient is noise on one path and left out on the other.
    gradients = [
        torch.zeros_like(weight) if weight.grad is None else weight.grad.clone()
        for weight in method.parameters()
    ]
    return float(loss.detach()), gradients, [buffer.clone() for buffer in method.buffers()]


@pytest.mark.parametrize("sparse", [False, True], ids=["dense-features", "sparse-features"])
@pytest.mark.parametrize("name", list(SETTINGS))
def test_padded_equals_plain(name: str, sparse: bool) -> None:
    graph = small_graph(sparse=sparse)
    settings = {"hidden": 6, "seeds": 9, "pool_size": 24, "positives": 3, "negatives": 5, "dropout": 0.0}
    losses, all_gradients, all_buffers = [], [], []
    seeds = torch.randperm(60, generator=torch.Generator().manual_seed(1))[:9]
    for static in (False, True):
        method = create("spgcl", 30, num_nodes=60, seed=0, settings={**settings, **SETTINGS[name]}).double()
        assert isinstance(method, SPGCL)
        tensors = doubled(method.prepare(graph, torch.device("cpu")).graph)
        nodes = neighbourhood_lists(tensors.adjacency, seeds, 1)[:24]
        pool = DrawnPool(nodes, torch.tensor(len(nodes))) if static else DrawnPool(nodes)
        loss, gradients, buffers = loss_and_gradients(method, tensors, seeds, pool, static=static)
        losses.append(loss)
        all_gradients.append(gradients)
        all_buffers.append(buffers)
    assert losses[0] == pytest.approx(losses[1], rel=1e-12)
    for plain, padded in zip(*all_gradients, strict=True):
        torch.testing.assert_close(padded, plain, rtol=1e-9, atol=1e-11)
    for plain, padded in zip(*all_buffers, strict=True):
        torch.testing.assert_close(padded, plain, rtol=1e-9, atol=1e-11)


def test_padding_changes_nothing() -> None:
    graph = small_graph(sparse=False)
    settings = {
        "hidden": 6, "seeds": 9, "pool_size": 24, "positives": 3, "negatives": 5, "dropout": 0.0,
        "batch_norm": "affine", "batch_norm_rows": "pool",
    }  # fmt: skip
    seeds = torch.arange(9)
    results = []
    for padding in (0, 7):
        method = create("spgcl", 30, num_nodes=60, seed=0, settings=settings).double()
        assert isinstance(method, SPGCL)
        tensors = doubled(method.prepare(graph, torch.device("cpu")).graph)
        nodes = neighbourhood_lists(tensors.adjacency, seeds, 1)[:24]
        padded = torch.cat([nodes, nodes[:1].expand(padding)])
        pool = DrawnPool(padded, torch.tensor(len(nodes)))
        results.append(loss_and_gradients(method, tensors, seeds, pool, static=True))
    assert results[0][0] == pytest.approx(results[1][0], rel=1e-12)
    for without, with_padding in zip(results[0][1], results[1][1], strict=True):
        torch.testing.assert_close(with_padding, without, rtol=1e-9, atol=1e-11)


def test_level_of_a_list_with_repeats() -> None:
    level, places = Level.of(torch.tensor([7, 2, 7, 5, 2]), 10)
    assert level.nodes.tolist() == [2, 5, 7, -1, -1]
    assert level.mask.tolist() == [1, 1, 1, 0, 0]
    assert places.tolist() == [2, 0, 2, 1, 0]
    assert level.places.tolist() == [-1, -1, 0, -1, -1, 1, -1, 2, -1, -1]
    assert int(level.size) == 3


def test_what_a_level_reads_is_its_neighbourhood() -> None:
    tensors = GraphTensors.of(small_graph(sparse=False), torch.device("cpu"))
    level, _ = Level.of(torch.tensor([3, 11]), 60)
    expected = torch.unique(tensors.adjacency.select(torch.tensor([3, 11])).columns)
    assert level.read(tensors.adjacency).mask.nonzero().reshape(-1).tolist() == expected.tolist()


def test_seeds_that_reach_a_node_are_counted() -> None:
    adjacency = GraphTensors.of(small_graph(sparse=False), torch.device("cpu")).adjacency
    seeds = torch.tensor([4, 9, 33])
    for hops in (0, 1, 2, 3):
        counts = torch.bincount(neighbourhood_lists(adjacency, seeds, hops), minlength=60)
        assert reaching_seeds(adjacency, seeds, hops).tolist() == counts.tolist()


@pytest.mark.parametrize("total", [3, 8, 30, 100])
def test_draws_are_distinct_and_uniform(total: int) -> None:
    keys = Keys(torch.Generator().manual_seed(0))
    counts = torch.zeros(total)
    rounds = 2000
    for _ in range(rounds):
        values, size = draw_distinct(torch.tensor(total), 8, keys)
        drawn = values[: int(size)]
        assert len(drawn.unique()) == len(drawn) == min(8, total)
        counts[drawn] += 1
    share = min(8, total) / total
    deviation = (rounds * share * (1 - share)) ** 0.5
    assert (counts - rounds * share).abs().max() <= 5 * deviation + 1e-9


def test_padded_pool_holds_what_the_lists_hold() -> None:
    adjacency = GraphTensors.of(small_graph(sparse=False), torch.device("cpu")).adjacency
    seeds = torch.arange(10)
    lists = torch.bincount(neighbourhood_lists(adjacency, seeds, 2), minlength=60)
    keys = Keys(torch.Generator().manual_seed(0))
    seen = torch.zeros(60)
    rounds = 600
    for _ in range(rounds):
        pool = padded_pool(adjacency, seeds, 2, 16, keys, as_set=False)
        counts = torch.bincount(pool.nodes[: int(pool.size or 0)], minlength=60)
        assert (counts <= lists).all()
        seen += counts
    expected = rounds * 16 * lists / lists.sum()
    assert (seen - expected).abs().max() <= 6 * expected.max().sqrt()
