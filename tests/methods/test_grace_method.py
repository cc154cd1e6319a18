import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from contrast_oracle import naive_loss
from scipy import sparse

from spgcl.augment import drop_edges, mask_features
from spgcl.datasets import load
from spgcl.errors import InputError
from spgcl.evaluation import probe
from spgcl.graph import Graph
from spgcl.methods import create
from spgcl.methods.grace import GRACE
from spgcl.tensors import SparseMatrix
from spgcl.training import train

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


def test_the_embedding_is_the_encoder_and_the_space_its_projection():
    method = make_method(10, hidden=6, projection=5)
    prepared = method.prepare(make_graph(), CPU)
    embeddings, projected = method.embed(prepared), method.space(prepared)
    assert embeddings.shape == projected.shape == (40, 6)
    assert not embeddings.requires_grad and not projected.requires_grad
    state = method.head.state_dict()
    inner = embeddings @ state["0.weight"].T + state["0.bias"]
    inner = torch.where(inner > 0, inner, inner.exp() - 1)
    torch.testing.assert_close(projected, inner @ state["2.weight"].T + state["2.bias"])


def test_weight_decay_is_part_of_the_gradient():
    """Adam's first step is the learning rate times the sign of the gradient, decay included."""
    method = make_method(10, hidden=6, weight_decay=1e9, learning_rate=0.01)
    prepared = method.prepare(make_graph(), CPU)
    before = method.encoder.convolutions[0].weight.detach().clone()
    optimiser = method.optimiser()
    method.loss(prepared, 0, seeded()).backward()
    optimiser.step()
    torch.testing.assert_close(method.encoder.convolutions[0].weight.detach(), before - 0.01 * before.sign())


@pytest.mark.parametrize(
    "name", ["drop_edges_first", "drop_edges_second", "mask_features_first", "mask_features_second"]
)
def test_a_rate_of_one_is_refused(name):
    with pytest.raises(InputError, match=f"{name} is 1.0; it must be at least 0 and below 1"):
        create("grace", 3, seed=0, settings={name: 1.0})


@pytest.fixture(scope="module")
def chameleon():
    folder = os.environ.get("SPGCL_DATA")
    if not folder or not (Path(folder) / "chameleon").is_dir():
        pytest.skip("SPGCL_DATA does not name a folder with the files of chameleon")
    return load("chameleon")


# The paper's probe at its fixed rate reads little from a narrow untrained encoder. Training also makes the
# embeddings larger, which helps that probe, so the objective has to have fallen well below chance, too.
def test_chameleon_trained_briefly_beats_its_untrained_encoder(chameleon):
    method = make_method(
        chameleon.graph.num_features, hidden=32, projection=32, steps=25, learning_rate=0.01, temperature=0.4
    )
    prepared = method.prepare(chameleon.graph, CPU)
    masks = chameleon.splits
    three = replace(masks, train=masks.train[:3], validation=masks.validation[:3], test=masks.test[:3])

    def accuracy():
        vectors = method.embed(prepared).numpy()
        return probe(vectors, chameleon.labels, three, epochs=300, learning_rate=0.02).mean

    untrained = accuracy()
    losses = train(method, prepared, seed=0).losses
    assert losses[-1] < losses[0] - 0.7
    assert accuracy() > untrained + 8
