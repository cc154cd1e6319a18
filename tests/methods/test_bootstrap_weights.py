"""Methods that bootstrap: one encoder is trained, the other follows it."""

import re

import numpy as np
import pytest
import torch

from spgcl.graph import Graph
from spgcl.methods import create

TINY = {
    "bgrl": {"hidden": 8, "embedding_width": 6, "predictor_width": 7},
    "afgrl": {"hidden": 8, "predictor_width": 7, "neighbours": 5, "clusters": 4},
}


@pytest.mark.parametrize("name", TINY)
def test_only_the_online_encoder_and_the_predictor_are_trained(name):
    generator = np.random.default_rng(0)
    sources, targets = generator.integers(0, 49, (2, 120))
    graph = Graph.from_edges(sources, targets, generator.normal(size=(50, 9)).astype(np.float32))
    method = create(name, 9, seed=0, settings=TINY[name])
    prepared = method.prepare(graph, torch.device("cpu"))
    trained = set(map(id, method.optimiser().weights))
    wanted = {
        f"{part}.{name}": weight
        for part in ("online", "predictor")
        for name, weight in getattr(method, part).named_parameters()
        # Batch norm, which follows, takes such a bias away.
        if not re.search(r"convolutions\.\d\.bias", name)
    }
    assert trained == set(map(id, wanted.values())) and len(wanted) > 8
    method.loss(prepared, 0, torch.Generator().manual_seed(5)).backward()
    assert all(weight.grad is None for weight in method.target.parameters())
    assert all(weight.grad is not None for weight in wanted.values())
