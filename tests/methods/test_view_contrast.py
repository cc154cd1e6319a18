"""What GRACE, GCA and GraphCL have in common: an encoder, a head, and an optimiser for both."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from differences import assert_gradients_match_central_differences

from spgcl.evaluation import probe
from spgcl.graph import Graph
from spgcl.methods.gca import GCA
from spgcl.methods.grace import GRACE
from spgcl.methods.graphcl import GraphCL
from spgcl.training.loop import train

CPU = torch.device("cpu")
each_method = pytest.mark.parametrize("kind", [GRACE, GCA, GraphCL])


def make_graph():
    """Forty nodes, the last one isolated."""
    generator = np.random.default_rng(0)
    sources, targets = generator.integers(0, 39, (2, 80))
    return Graph.from_edges(sources, targets, generator.normal(size=(40, 10)).astype(np.float32))


def make_method(kind, num_features, *, seed=0, **settings):
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return kind(num_features, **settings)


def seeded(seed=7):
    return torch.Generator().manual_seed(seed)


def elu(values):
    return torch.where(values > 0, values, values.exp() - 1)


def relu(values):
    return torch.where(values > 0, values, 0.0)


@each_method
def test_the_embedding_is_the_encoder_on_the_whole_graph(kind):
    method = make_method(kind, 10, hidden=6, projection=5)
    prepared = method.prepare(make_graph(), CPU)
    method.loss(prepared, 0, seeded())
    embeddings = method.embed(prepared)
    assert embeddings.shape == (40, 6) and not embeddings.requires_grad
    torch.testing.assert_close(embeddings, method.eval().encoder(prepared.graph, None, None).detach())


@pytest.mark.parametrize(("kind", "activation"), [(GRACE, elu), (GCA, elu), (GraphCL, relu)])
def test_the_space_is_the_projection_of_the_embedding(kind, activation):
    method = make_method(kind, 10, hidden=6, projection=5)
    prepared = method.prepare(make_graph(), CPU)
    projected = method.space(prepared)
    assert projected.shape == (40, 6) and not projected.requires_grad
    state = method.head.state_dict()
    inner = method.embed(prepared) @ state["0.weight"].T + state["0.bias"]
    assert (inner < -0.1).any()
    torch.testing.assert_close(projected, activation(inner) @ state["2.weight"].T + state["2.bias"])


@each_method
def test_weight_decay_is_part_of_the_gradient(kind):
    """Adam's first step is the learning rate times the sign of the gradient, decay included."""
    method = make_method(kind, 10, hidden=6, weight_decay=1e9, learning_rate=0.01)
    prepared = method.prepare(make_graph(), CPU)
    weights = method.trained_weights()
    before = [weight.detach().clone() for weight in weights]
    optimiser = method.optimiser()
    method.loss(prepared, 0, seeded()).backward()
    optimiser.step()
    for weight, earlier in zip(weights, before, strict=True):
        torch.testing.assert_close(weight.detach(), earlier - 0.01 * earlier.sign())


@each_method
def test_gradients_match_central_differences(kind):
    method = make_method(kind, 10, hidden=6, projection=5).double()
    prepared = method.prepare(make_graph(), CPU)
    prepared.graph = replace(prepared.graph, features=prepared.graph.features.double())
    assert_gradients_match_central_differences(method, lambda: method.loss(prepared, 0, seeded()))


# Batch norm is settled on the graph first: while its running statistics lag behind, steps that learn nothing
# make an encoder better, too. Columns are standardised, so that larger embeddings are not taken for better.
def look(method, prepared, dataset):
    """The loss over two views that are always the same, and the accuracy of a probe."""
    loss = method.loss(prepared, 0, seeded()).item()
    for norm in method.encoder.norms:
        norm.momentum = 1.0
    method.encoder(prepared.graph, None, None)
    vectors = method.embed(prepared)
    vectors = ((vectors - vectors.mean(dim=0)) / vectors.std(dim=0)).numpy()
    return loss, probe(vectors, dataset.labels, dataset.splits, epochs=200, learning_rate=0.02).mean


@each_method
def test_chameleon_trained_briefly_beats_its_untrained_encoder(chameleon, kind):
    settings = {"hidden": 16, "projection": 16, "temperature": 0.4, "steps": 40, "learning_rate": 0.01}
    method = make_method(kind, chameleon.graph.num_features, seed=2, **settings)
    prepared = method.prepare(chameleon.graph, CPU)
    untrained_loss, untrained_accuracy = look(method, prepared, chameleon)
    train(method, prepared, seed=2)
    loss, accuracy = look(method, prepared, chameleon)
    assert loss < untrained_loss - 1.2
    assert accuracy > untrained_accuracy + 2
