import copy
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

from spgcl.engine.tensors import SparseMatrix
from spgcl.errors import InputError
from spgcl.graph import Graph
from spgcl.methods import create
from spgcl.methods.bgrl import BGRL, bootstrap_loss, encode
from spgcl.methods.parts.augment import drop_edges, mask_features
from spgcl.methods.parts.schedules import cosine_schedule, move_average
from spgcl.training.loop import train

CPU = torch.device("cpu")
TINY = {"hidden": 8, "embedding_width": 6, "predictor_width": 7, "steps": 6, "learning_rate": 0.05}
SHARES = ("drop_edges_1", "drop_edges_2", "mask_features_1", "mask_features_2", "decay", "warm_up")


def make_graph():
    """Fifty nodes, the last one isolated."""
    generator = np.random.default_rng(0)
    sources, targets = generator.integers(0, 49, (2, 120))
    return Graph.from_edges(sources, targets, generator.normal(size=(50, 9)).astype(np.float32))


def make_method(**changes):
    torch.manual_seed(0)
    method = BGRL(9, **{**TINY, **changes})
    return method, method.prepare(make_graph(), CPU)


def in_double(method, prepared):
    prepared.graph = replace(prepared.graph, features=prepared.graph.features.double())
    return method.double(), prepared


def seeded(seed=5):
    return torch.Generator().manual_seed(seed)


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
    method, prepared = in_double(*make_method(**rates))
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
    method, prepared = in_double(*make_method())
    weights = [weight for weight in method.parameters() if weight.requires_grad]
    # Entries of the weights are shifted in place, where the method reads them.
    assert gradcheck(lambda *_: method.loss(prepared, 0, seeded()), weights, atol=1e-7, fast_mode=True)


def test_the_embedding_is_that_of_two_convolutions_on_the_whole_graph():
    method, prepared = make_method(normalise_features=False)
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


def test_the_target_starts_elsewhere_and_follows_with_the_decay_of_the_step():
    method, _ = make_method(decay=0.8)
    online, before = method.online.state_dict(), copy.deepcopy(method.target.state_dict())
    name = "0.convolutions.0.weight"
    assert not torch.allclose(online[name], before[name])
    method.after_step(2)
    decay = 1 - 0.2 * (math.cos(math.pi * 2 / 6) + 1) / 2
    expected = decay * before[name] + (1 - decay) * online[name]
    torch.testing.assert_close(method.target.state_dict()[name], expected)
    move_average(method.target, method.online, 0.0)
    torch.testing.assert_close(method.target.state_dict()[name], online[name])


def test_the_schedule_rises_in_a_line_and_falls_along_half_a_cosine():
    assert [cosine_schedule(step, 100, 10) for step in (0, 5, 10)] == pytest.approx([0, 0.5, 1])
    assert cosine_schedule(55, 100, 10) == pytest.approx(0.5)
    assert cosine_schedule(100, 100, 10) == pytest.approx(0, abs=1e-12)
    assert cosine_schedule(0, 100) == 1


def test_the_learning_rate_follows_its_schedule():
    method, _ = make_method(warm_up=0.5)
    rates = [method.learning_rate_at(step) for step in range(6)]
    assert rates == pytest.approx([0.05 * cosine_schedule(step, 6, 3) for step in range(6)])


def test_training_continued_from_a_checkpoint_gives_the_same_bytes():
    method, prepared = make_method()
    whole = train(method, prepared, seed=3).losses
    embeddings = method.embed(prepared)
    kept = []
    method, prepared = make_method()
    train(method, prepared, seed=3, save=lambda point: kept.append(copy.deepcopy(point)), stop=lambda: True)
    assert kept[0].step == 1
    method, prepared = make_method()
    assert train(method, prepared, seed=3, start=kept[0]).losses == whole
    assert torch.equal(method.embed(prepared), embeddings)


def test_the_same_seed_gives_the_same_bytes_with_sparse_features_too():
    def outcome(seed):
        method, prepared = make_method()
        few = make_graph()
        few = few.with_features(np.where(few.features > 1.5, few.features, 0))
        prepared = method.prepare(few, CPU)
        assert isinstance(prepared.graph.features, SparseMatrix)
        return train(method, prepared, seed=seed).losses, method.embed(prepared).numpy().tobytes()

    assert outcome(1) == outcome(1) != outcome(2)


@pytest.mark.parametrize("name", SHARES)
def test_a_share_of_one_is_refused(name):
    with pytest.raises(InputError, match=f"{name} is 1.0; it must be at least 0 and below 1"):
        create("bgrl", 9, seed=0, settings={name: 1.0})
