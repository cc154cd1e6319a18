"""Rows with a bounded number of entries: whole where they are short, right on average where they are not."""

from functools import partial

import numpy as np
import pytest
import torch

import spgcl
from spgcl.engine.sampling import sampled_rows
from spgcl.engine.tensors import GraphTensors, SparseMatrix
from spgcl.methods.parts.pools import neighbourhood_lists, neighbourhood_union


@pytest.fixture
def adjacency() -> SparseMatrix:
    """A hub with all others around it, a path along them, and a node apart."""
    path = [(number, number + 1) for number in range(1, 39)]
    star = [(0, number) for number in range(1, 40)]
    graph = spgcl.Graph.of((np.array(path + star), np.ones((41, 1), dtype=np.float32)))
    return GraphTensors.of(graph, torch.device("cpu")).adjacency


def test_short_rows_are_whole(adjacency: SparseMatrix) -> None:
    rows = torch.tensor([5, 40, 39])
    sampled = sampled_rows(adjacency, rows, 4, torch.Generator().manual_seed(0))
    torch.testing.assert_close(sampled.dense(), adjacency.select(rows).dense())


def test_long_rows_are_bounded_and_keep_themselves(adjacency: SparseMatrix) -> None:
    sampled = sampled_rows(adjacency, torch.tensor([0, 3]), 3, torch.Generator().manual_seed(0))
    assert sampled.counts.tolist() == [4, 4]
    assert 0 in sampled.columns[:4]
    assert 3 in sampled.columns[4:]
    assert set(sampled.columns[4:].tolist()) <= {0, 2, 3, 4}


def test_products_have_the_right_mean(adjacency: SparseMatrix) -> None:
    rows, generator = torch.tensor([0, 7]), torch.Generator().manual_seed(0)
    dense = torch.randn(41, 3, generator=generator)
    products = torch.stack([sampled_rows(adjacency, rows, 2, generator) @ dense for _ in range(4000)])
    exact = adjacency.select(rows) @ dense
    error = products.std(0) / len(products) ** 0.5
    assert bool(((products.mean(0) - exact).abs() <= 5 * error + 1e-6).all())
    assert float(error.max()) > 0


@pytest.mark.parametrize("gather", [neighbourhood_union, neighbourhood_lists])
def test_a_bounded_hop_reaches_no_more(gather, adjacency: SparseMatrix) -> None:
    generator = torch.Generator().manual_seed(0)
    seeds = torch.tensor([0, 20])
    bounded = gather(adjacency, seeds, 1, rows_of=partial(sampled_rows, fan_out=3, generator=generator))
    assert set(bounded.tolist()) <= set(gather(adjacency, seeds, 1).tolist())
    assert {0, 20} <= set(bounded.tolist())
    assert len(bounded) <= 8 < len(gather(adjacency, seeds, 1))


@pytest.mark.parametrize("encoder", ["gcn", "sage", "gat", "gin", "mlp"])
def test_training_with_bounded_rows(encoder: str) -> None:
    settings = {"hidden": 8, "steps": 3, "seeds": 20, "pool_size": 30, "batch_norm_rows": "pool"}
    graph = spgcl.load("csbm-homophilic")
    bounded = spgcl.Embedder("spgcl", encoder=encoder, fan_out=2, **settings).fit(graph)
    whole = spgcl.Embedder("spgcl", encoder=encoder, **settings).fit(graph)
    assert np.isfinite(bounded.transform(graph)).all()
    assert bounded.history_.losses != whole.history_.losses
