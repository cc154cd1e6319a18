"""What GRACE, GCA and GraphCL have in common: an encoder, a head, and an optimiser for both."""

from functools import partial

import graphs
import pytest
import torch
from differences import assert_gradients_match_central_differences
from graphs import seeded
from made_methods import fresh, in_double, standardised_score

from spgcl.methods.gca import GCA
from spgcl.methods.grace import GRACE
from spgcl.methods.graphcl import GraphCL
from spgcl.training.loop import train

make_graph = partial(graphs.make_graph, 40, 10, num_edges=80)
each_method = pytest.mark.parametrize("kind", [GRACE, GCA, GraphCL])


def elu(values):
    return torch.where(values > 0, values, values.exp() - 1)


def relu(values):
    return torch.where(values > 0, values, 0.0)


@each_method
def test_the_embedding_is_the_encoder_on_the_whole_graph(kind):
    method, prepared = fresh(kind, make_graph(), hidden=6, projection=5)
    method.loss(prepared, 0, seeded())
    embeddings = method.embed(prepared)
    assert embeddings.shape == (40, 6) and not embeddings.requires_grad
    torch.testing.assert_close(embeddings, method.eval().encoder(prepared.graph, None, None).detach())


@pytest.mark.parametrize(("kind", "activation"), [(GRACE, elu), (GCA, elu), (GraphCL, relu)])
def test_the_space_is_the_projection_of_the_embedding(kind, activation):
    method, prepared = fresh(kind, make_graph(), hidden=6, projection=5)
    projected = method.space(prepared)
    assert projected.shape == (40, 6) and not projected.requires_grad
    state = method.head.state_dict()
    inner = method.embed(prepared) @ state["0.weight"].T + state["0.bias"]
    assert (inner < -0.1).any()
    torch.testing.assert_close(projected, activation(inner) @ state["2.weight"].T + state["2.bias"])


@each_method
def test_weight_decay_is_part_of_the_gradient(kind):
    """Adam's first step is the learning rate times the sign of the gradient, decay included."""
    method, prepared = fresh(kind, make_graph(), hidden=6, weight_decay=1e9, learning_rate=0.01)
    weights = method.trained_weights()
    before = [weight.detach().clone() for weight in weights]
    optimiser = method.optimiser()
    method.loss(prepared, 0, seeded()).backward()
    optimiser.step()
    for weight, earlier in zip(weights, before, strict=True):
        torch.testing.assert_close(weight.detach(), earlier - 0.01 * earlier.sign())


@each_method
def test_gradients_match_central_differences(kind):
    method, prepared = in_double(*fresh(kind, make_graph(), hidden=6, projection=5))
    assert_gradients_match_central_differences(method, lambda: method.loss(prepared, 0, seeded()))


# Batch norm gets the statistics of the graph first: while they lag behind, steps that learn nothing make an
# encoder better, too.
def loss_and_score(method, prepared, dataset):
    """The loss over two views that are always the same, and the accuracy of a probe."""
    loss = method.loss(prepared, 0, seeded()).item()
    for norm in method.encoder.norms:
        norm.momentum = 1.0
    method.encoder(prepared.graph, None, None)
    return loss, standardised_score(method, prepared, dataset, learning_rate=0.02)


@each_method
def test_chameleon_trained_briefly_beats_its_untrained_encoder(chameleon, kind):
    settings = {"hidden": 16, "projection": 16, "temperature": 0.4, "steps": 40, "learning_rate": 0.01}
    method, prepared = fresh(kind, chameleon.graph, seed=2, **settings)
    untrained_loss, untrained_accuracy = loss_and_score(method, prepared, chameleon)
    train(method, prepared, seed=2)
    loss, accuracy = loss_and_score(method, prepared, chameleon)
    assert loss < untrained_loss - 1.2
    assert accuracy > untrained_accuracy + 2
