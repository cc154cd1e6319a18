import math
from functools import partial

import graphs
import made_methods
import numpy as np
import pytest
import torch
from graphs import seeded
from made_methods import gradients_are_right, in_double

from spgcl.methods.bgrl import BGRL, bootstrap_loss, encode
from spgcl.methods.parts.augment import drop_edges, mask_features
from spgcl.methods.parts.schedules import cosine_schedule

TINY = {"hidden": 8, "embedding_width": 6, "predictor_width": 7, "steps": 6, "learning_rate": 0.05}
TINY |= {"batch_norm": "affine"}
make_graph = partial(graphs.make_graph, 50, 9, num_edges=120)
fresh = partial(made_methods.fresh, BGRL, make_graph(), **TINY)


def naive_direction(predictions, targets):
    total = 0.0
    for prediction, target in zip(predictions.tolist(), targets.tolist(), strict=True):
        dot = sum(one * other for one, other in zip(prediction, target, strict=True))
        total += dot / math.hypot(*prediction) / math.hypot(*target)
    return 1 - total / len(predictions)


def test_the_loss_of_a_direction_is_that_of_naive_loops():
    predictions, targets = torch.randn(2, 11, 4, generator=seeded(), dtype=torch.float64)
    expected = naive_direction(predictions, targets)
    assert bootstrap_loss(predictions, targets).item() == pytest.approx(expected, rel=1e-12)


def test_the_loss_predicts_each_view_from_the_other():
    rates = {"drop_edges_1": 0.3, "drop_edges_2": 0.5, "mask_features_1": 0.6, "mask_features_2": 0.4}
    method, prepared = in_double(*fresh(**rates))
    # Masked columns differ from view to view: two draws in the order of the method give the same views.
    views = []
    generator = seeded()
    for edge_rate, feature_rate in ((0.3, 0.6), (0.5, 0.4)):
        view = drop_edges(prepared.graph, edge_rate, generator)
        views.append(mask_features(view, feature_rate, generator))
    predictions = [method.predictor(encode(method.online, view)) for view in views]
    targets = [encode(method.target, view) for view in views]
    expected = naive_direction(predictions[0], targets[1]) + naive_direction(predictions[1], targets[0])
    assert method.loss(prepared, 0, seeded()).item() == pytest.approx(expected, rel=1e-9)
    assert naive_direction(predictions[0], targets[0]) != pytest.approx(
        naive_direction(predictions[0], targets[1]), rel=1e-3
    )


def test_gradients_match_central_differences():
    assert gradients_are_right(*in_double(*fresh()))


def test_the_embedding_is_that_of_two_convolutions_on_the_whole_graph():
    method, prepared = fresh(normalise_features=False)
    graph = make_graph()
    looped = graph.adjacency.toarray() + np.eye(50)
    scale = 1 / np.sqrt(looped.sum(axis=1))
    propagation = torch.from_numpy(looped * scale * scale[:, None]).float()
    hidden = torch.from_numpy(np.array(graph.features))
    for layer in method.online:
        convolution, norm = layer.convolutions[0], layer.norms[0]
        hidden = propagation @ hidden @ convolution.weight + convolution.bias
        hidden = torch.nn.functional.prelu(
            (hidden - norm.running_mean) / (norm.running_var + norm.eps).sqrt() * norm.weight + norm.bias,
            layer.activation.weight,
        )
    embeddings = method.embed(prepared)
    torch.testing.assert_close(embeddings, hidden.detach())
    assert not embeddings.requires_grad and method.online.training


def test_the_schedule_rises_in_a_line_and_falls_along_half_a_cosine():
    assert [cosine_schedule(step, 100, 10) for step in (0, 5, 10)] == pytest.approx([0, 0.5, 1])
    assert cosine_schedule(55, 100, 10) == pytest.approx(0.5)
    assert cosine_schedule(100, 100, 10) == pytest.approx(0, abs=1e-12)
    assert cosine_schedule(0, 100) == 1


def test_the_learning_rate_follows_its_schedule():
    method, _ = fresh(warm_up=0.5)
    rates = [method.learning_rate_at(step) for step in range(6)]
    assert rates == pytest.approx([0.05 * cosine_schedule(step, 6, 3) for step in range(6)])
