from dataclasses import replace

import numpy as np
import pytest
import torch
from contrast_oracle import naive_loss
from scipy import sparse

from spgcl.engine.tensors import SparseMatrix
from spgcl.errors import InputError
from spgcl.graph import Graph
from spgcl.methods import create
from spgcl.methods.grace import GRACE
from spgcl.methods.parts.augment import drop_edges, mask_features

CPU = torch.device("cpu")


def make_graph(*, sparse_features=False):
    """Forty nodes, the last one isolated."""
    generator = np.random.default_rng(0)
    sources, targets = generator.integers(0, 39, (2, 80))
    features = generator.normal(size=(40, 10)).astype(np.float32)
    if sparse_features:
        features = sparse.csr_array(features * (generator.random(features.shape) < 0.07))
    return Graph.from_edges(sources, targets, features)


def make_method(num_features, **settings):
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        return GRACE(num_features, **settings)


def seeded(seed=7):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("sparse_features", [False, True])
def test_a_step_is_the_objective_over_two_views(sparse_features):
    graph = make_graph(sparse_features=sparse_features)
    rates = {"drop_edges_first": 0.3, "drop_edges_second": 0.5}
    rates |= {"mask_features_first": 0.2, "mask_features_second": 0.4}
    method = make_method(10, hidden=6, projection=5, temperature=0.3, **rates).double()
    prepared = method.prepare(graph, CPU)
    features = prepared.graph.features
    assert isinstance(features, SparseMatrix) == sparse_features
    features = replace(features, values=features.values.double()) if sparse_features else features.double()
    prepared.graph = replace(prepared.graph, features=features)

    generator, projections = seeded(), []
    for place in ("first", "second"):
        view = drop_edges(prepared.graph, rates[f"drop_edges_{place}"], generator)
        view = mask_features(view, rates[f"mask_features_{place}"], generator)
        projections.append(method.head(method.encoder(view, None, None)))
    assert not torch.allclose(*projections)
    loss = method.loss(prepared, 0, seeded())
    assert loss.item() == pytest.approx(naive_loss(*projections, 0.3), rel=1e-10)


def test_equal_views_of_equal_nodes_cannot_be_told_apart():
    """Without augmentation and with one feature vector for all, every similarity is 1: log(2 N - 1)."""
    ends = np.arange(10)
    graph = Graph.from_edges(ends, (ends + 1) % 10, np.ones((10, 3)))
    rates = dict.fromkeys(("drop_edges_first", "drop_edges_second", "mask_features_first"), 0.0)
    method = make_method(3, hidden=4, **rates)
    loss = method.loss(method.prepare(graph, CPU), 0, seeded())
    assert loss.item() == pytest.approx(np.log(19), rel=1e-5)


@pytest.mark.parametrize(
    "name", ["drop_edges_first", "drop_edges_second", "mask_features_first", "mask_features_second"]
)
def test_a_rate_of_one_is_refused(name):
    with pytest.raises(InputError, match=f"{name} is 1.0; it must be at least 0 and below 1"):
        create("grace", 3, seed=0, settings={name: 1.0})
