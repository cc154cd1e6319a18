"""The supervised baselines: against plain loops, blind to the labels of test nodes, and on real graphs."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from graphs import CPU
from made_methods import dense
from scipy import sparse

from spgcl.datasets import Dataset, Splits, random_splits
from spgcl.engine.activations import dropout_factors
from spgcl.engine.tensors import SparseMatrix
from spgcl.errors import InputError
from spgcl.evaluation import score_predictions
from spgcl.graph import Graph
from spgcl.methods import Supervision, create
from spgcl.training.loop import train

NAMES = ("mlp", "gcn")


def make_dataset(*, sparse_features=False, directed=False, count=3):
    """Eighty nodes of three classes, with features of uneven size that say a little of the class."""
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 3, 80)
    sources, targets = generator.integers(0, 79, (2, 200))
    features = generator.normal(size=(80, 9)) * generator.uniform(0.2, 5, (80, 1))
    features[np.arange(80), labels] += 2
    if sparse_features:
        features = sparse.csr_array(features * (generator.random(features.shape) < 0.08))
    graph = Graph.from_edges(sources, targets, features, directed=directed)
    splits = random_splits(labels, seed=0, fractions=(0.4, 0.3, 0.3), count=count)
    return Dataset("small", graph, labels, splits)


def make(name, dataset, *, seed=0, **settings):
    supervision = Supervision.of(dataset.labels, dataset.splits)
    method = create(
        name, dataset.graph.num_features, task=supervision.task, seed=seed, settings={"hidden": 5, **settings}
    )
    return method, method.prepare(dataset.graph, CPU, supervision)


def class_scores(name, dataset, **settings):
    method, prepared = make(name, dataset, **settings)
    train(method, prepared, seed=0)
    return method.embed(prepared).numpy()


def weights_of(method, model):
    """The four parameters of one model, as a plain network would hold them."""
    classifiers = method.classifiers
    _, width, _ = classifiers.shape
    columns = slice(model * width, (model + 1) * width)
    return [
        classifiers.first[:, columns].detach().clone().requires_grad_(),
        classifiers.first_bias[columns].detach().clone().requires_grad_(),
        classifiers.second[model].detach().clone().requires_grad_(),
        classifiers.second_bias[model].detach().clone().requires_grad_(),
    ]


def network(inputs, adjacency, weights):
    """Softmax's input of Eq. 9: A relu(A X W + b) V + c; A is the identity without edges."""
    first, first_bias, second, second_bias = weights
    return adjacency @ (adjacency @ inputs @ first + first_bias).relu() @ second + second_bias


def literal_training(method, prepared, dataset, model, settings):
    """One model, one plain Adam: class scores of the step with most validation nodes right."""
    inputs, labels = dense(prepared.graph.features), torch.from_numpy(dataset.labels)
    adjacency = prepared.graph.adjacency.dense() if method.classifiers.propagate else torch.eye(len(labels))
    train_part, validation = (
        torch.from_numpy(getattr(dataset.splits, part)[model]) for part in ("train", "validation")
    )
    weights = weights_of(method, model)
    decay = [settings["weight_decay"], 0, 0, 0]
    groups = [{"params": [one], "weight_decay": rate} for one, rate in zip(weights, decay, strict=True)]
    optimiser = torch.optim.Adam(groups, lr=settings["learning_rate"])
    best, losses, steps = (-1, 0.0), [], []
    for step in range(settings["steps"]):
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(
            network(inputs, adjacency, weights)[train_part], labels[train_part]
        )
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
        scores = network(inputs, adjacency, weights).detach()
        right = int((scores.argmax(1) == labels)[validation].sum())
        validation_loss = torch.nn.functional.cross_entropy(scores[validation], labels[validation]).item()
        if (right, -validation_loss) > best or not step:
            best, kept = (right, -validation_loss), scores
            steps.append(step)
    return kept, losses, steps


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("sparse_features", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_models_side_by_side_are_what_each_is_alone(name, sparse_features, directed):
    dataset = make_dataset(sparse_features=sparse_features, directed=directed)
    settings = {"dropout": 0.0, "steps": 30, "learning_rate": 0.05, "weight_decay": 0.02}
    method, prepared = make(name, dataset, **settings)
    assert isinstance(prepared.graph.features, SparseMatrix) == sparse_features
    alone = [literal_training(method, prepared, dataset, model, settings) for model in range(3)]
    history = train(method, prepared, seed=0)
    found = method.embed(prepared).view(80, 3, 3)
    for model, (scores, _, _) in enumerate(alone):
        torch.testing.assert_close(found[:, model], scores, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(history.losses, np.sum([losses for _, losses, _ in alone], axis=0), rtol=1e-4)
    # Some step before the last was kept, and not the first: there was something to choose.
    assert any(0 < steps[-1] < 29 for _, _, steps in alone)


def test_the_best_weights_of_a_model_are_its_own_whatever_the_sizes():
    """As many classes as hidden units of all models together: layers cannot be told apart by their width."""
    dataset = make_dataset(count=3)
    dataset = replace(dataset, labels=dataset.labels + 3 * (np.arange(80) % 2))
    settings = {"hidden": 2, "dropout": 0.0, "steps": 12, "learning_rate": 0.1, "weight_decay": 0.0}
    method, prepared = make("gcn", dataset, **settings)
    assert method.classifiers.shape == (3, 2, 6)
    alone = [literal_training(method, prepared, dataset, model, settings)[0] for model in range(3)]
    train(method, prepared, seed=0)
    found = method.embed(prepared).view(80, 3, 6)
    torch.testing.assert_close(found, torch.stack(alone, dim=1), rtol=1e-3, atol=1e-4)


def message_network(kind, prepared, network):
    """Two PyTorch Geometric layers over the edges, self loops for attention alone; weights copied."""
    from torch_geometric import nn as pyg

    made = {
        "gat": lambda width, out: pyg.GATConv(width, out, add_self_loops=True),
        "sage": pyg.SAGEConv,
        "gin": lambda width, out: pyg.GINConv(
            torch.nn.Sequential(torch.nn.Linear(width, out), torch.nn.ReLU(), torch.nn.Linear(out, out))
        ),
    }[kind]
    layers = torch.nn.ModuleList([made(9, 5), made(5, 3)])
    for layer, ours in zip(layers, (network.first, network.second), strict=True):
        layer.load_state_dict(ours.convolution.state_dict())
    matrix = prepared.graph.adjacency.dense() != 0
    matrix.fill_diagonal_(False)
    targets, sources = matrix.nonzero().T
    edges = torch.stack([sources, targets])
    return layers, lambda inputs: layers[1](layers[0](inputs, edges).relu(), edges)


@pytest.mark.parametrize("kind", ["gat", "gin", "sage"])
def test_models_of_other_layers_are_what_each_is_alone(kind):
    dataset = make_dataset(count=2)
    settings = {"dropout": 0.0, "steps": 15, "learning_rate": 0.05, "weight_decay": 0.02, "encoder": kind}
    method, prepared = make("gcn", dataset, **settings)
    labels = torch.from_numpy(dataset.labels)
    alone = []
    for model in range(2):
        layers, predict = message_network(kind, prepared, method.classifiers.networks[model])
        groups = [
            {"params": layer.parameters(), "weight_decay": rate}
            for layer, rate in zip(layers, (settings["weight_decay"], 0), strict=True)
        ]
        optimiser = torch.optim.Adam(groups, lr=settings["learning_rate"])
        train_part, validation = (
            torch.from_numpy(getattr(dataset.splits, part)[model]) for part in ("train", "validation")
        )
        best = (-1, 0.0)
        for step in range(settings["steps"]):
            optimiser.zero_grad()
            scores = predict(prepared.graph.features)
            torch.nn.functional.cross_entropy(scores[train_part], labels[train_part]).backward()
            optimiser.step()
            scores = predict(prepared.graph.features).detach()
            right = int((scores.argmax(1) == labels)[validation].sum())
            loss = torch.nn.functional.cross_entropy(scores[validation], labels[validation]).item()
            if (right, -loss) > best or not step:
                best, kept = (right, -loss), scores
        alone.append(kept)
    train(method, prepared, seed=0)
    found = method.embed(prepared).view(80, 2, 3)
    torch.testing.assert_close(found, torch.stack(alone, dim=1), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("sparse_features", [False, True], ids=["dense", "sparse"])
def test_dropout_takes_inputs_of_both_layers_in_training_only(name, sparse_features):
    dataset = make_dataset(sparse_features=sparse_features, count=2)
    method, prepared = make(name, dataset, dropout=0.4)
    loss = method.loss(prepared, 0, torch.Generator().manual_seed(5))
    generator = torch.Generator().manual_seed(5)
    features = prepared.graph.features
    values = features.values if sparse_features else features
    dropped = values * (torch.rand(values.shape, generator=generator) >= 0.4) / 0.6
    inputs = dense(replace(features, values=dropped) if sparse_features else dropped)
    adjacency = prepared.graph.adjacency.dense() if name == "gcn" else torch.eye(80)
    kept = dropout_factors(torch.Size([80, 2, 5]), 0.4, generator, torch.float32)
    expected = 0.0
    for model in range(2):
        first, first_bias, second, second_bias = weights_of(method, model)
        hidden = (adjacency @ inputs @ first + first_bias).relu() * kept[:, model]
        scores = adjacency @ hidden @ second + second_bias
        part = torch.from_numpy(dataset.splits.train[model])
        labels = torch.from_numpy(dataset.labels)
        expected += torch.nn.functional.cross_entropy(scores[part], labels[part]).item()
    assert loss.item() == pytest.approx(expected, rel=1e-4)
    assert method.embed(prepared).equal(method.embed(prepared))


def test_a_row_of_labels_holds_training_and_validation_nodes_and_nothing_of_the_rest():
    dataset = make_dataset()
    supervision = Supervision.of(dataset.labels, dataset.splits)
    known = dataset.splits.train | dataset.splits.validation
    assert supervision.task == (3, 3)
    np.testing.assert_array_equal(supervision.labels >= 0, known)
    assert (supervision.labels == dataset.labels)[known].all()
    np.testing.assert_array_equal(supervision.validation, dataset.splits.validation)


def shuffled(labels, nodes):
    """Labels permuted among some nodes, so that many of them have another."""
    changed = labels.copy()
    changed[nodes] = np.random.default_rng(3).permutation(labels[nodes])
    assert (changed != labels).sum() > len(nodes) / 3
    return changed


@pytest.mark.parametrize("name", NAMES)
def test_labels_of_test_nodes_change_no_byte(name):
    dataset = make_dataset(count=1)
    method, prepared = make(name, dataset, steps=5)
    test_nodes = np.flatnonzero(dataset.splits.test[0])
    other = replace(dataset, labels=shuffled(dataset.labels, test_nodes))
    again, prepared_again = make(name, other, steps=5)
    histories = [train(method, prepared, seed=0), train(again, prepared_again, seed=0)]
    assert histories[0].losses == histories[1].losses
    state, state_again = method.state_dict(), again.state_dict()
    assert all(state[key].numpy().tobytes() == state_again[key].numpy().tobytes() for key in state)
    # The test would not be one if labels made no difference at all.
    known = replace(dataset, labels=shuffled(dataset.labels, np.flatnonzero(dataset.splits.train[0])))
    assert class_scores(name, known, steps=5).tobytes() != method.embed(prepared).numpy().tobytes()


@pytest.mark.parametrize("name", NAMES)
def test_a_model_learns_nothing_from_the_split_of_another(name):
    dataset = make_dataset(count=3)
    test_nodes = np.flatnonzero(dataset.splits.test[1])
    other = replace(dataset, labels=shuffled(dataset.labels, test_nodes))
    scores, changed = (class_scores(name, one, steps=5).reshape(80, 3, 3) for one in (dataset, other))
    assert scores[:, 1].tobytes() == changed[:, 1].tobytes()
    assert not np.allclose(scores[:, 0], changed[:, 0]) and not np.allclose(scores[:, 2], changed[:, 2])


def test_one_split_gets_ten_models_that_start_differently():
    dataset = make_dataset(count=1)
    scores = class_scores("gcn", dataset, steps=3).reshape(80, 10, 3)
    assert len({scores[:, model].tobytes() for model in range(10)}) == 10
    record = score_predictions(scores.reshape(80, 30), dataset.labels, dataset.splits).as_record()
    assert record["std_over"] == "training starts" and record["protocol"] == "predictions"
    assert [(one["split"], one["start"]) for one in record["splits"]] == [(0, start) for start in range(10)]


@pytest.mark.parametrize(("metric", "num_classes"), [("accuracy", 3), ("roc_auc", 2)])
def test_predictions_are_scored_on_the_own_split_alone(metric, num_classes):
    from sklearn.metrics import accuracy_score, roc_auc_score

    generator = np.random.default_rng(0)
    labels = np.arange(60) % num_classes
    splits = random_splits(labels, seed=1, fractions=(0.3, 0.3, 0.4), count=4)
    scores = generator.normal(size=(60, 4, num_classes)).astype(np.float32)
    found = score_predictions(scores.reshape(60, -1), labels, splits, metric=metric)
    for model, one in enumerate(found.splits):
        assert (one.split, one.start) == (model, 0)
        for part, value in (("validation", one.validation), ("test", one.test)):
            mask = getattr(splits, part)[model]
            rows = scores[mask, model]
            expected = (
                accuracy_score(labels[mask], rows.argmax(1))
                if metric == "accuracy"
                else roc_auc_score(labels[mask], rows[:, 1] - rows[:, 0])
            )
            assert value == pytest.approx(100 * expected)
    tests = [one.test for one in found.splits]
    assert found.mean == pytest.approx(np.mean(tests)) and found.std == pytest.approx(np.std(tests))
    assert found.std_over == "splits" and str(found).endswith("over 4 splits")


@pytest.mark.parametrize(
    ("width", "count", "models"), [(5, 2, 2), (7, 2, 2), (3, 2, 2), (12, 2, 2), (3, 1, 10), (60, 1, 10)]
)
def test_class_scores_of_another_task_are_refused(width, count, models):
    dataset = make_dataset(count=count)
    message = f"{width} class scores .* {models} models of 3 classes give {3 * models}"
    with pytest.raises(InputError, match=message):
        score_predictions(np.ones((80, width), np.float32), dataset.labels, dataset.splits)


def test_missing_or_misshapen_labels_are_refused():
    dataset = make_dataset()
    with pytest.raises(InputError, match="gcn"):
        create("gcn", 9, seed=0)
    with pytest.raises(InputError, match=r"\(79,\).* 80 nodes"):
        Supervision.of(dataset.labels[:-1], dataset.splits)
    with pytest.raises(InputError, match=r"float64 and shape \(80,\)"):
        Supervision.of(dataset.labels.astype(float), dataset.splits)
    unknown = dataset.labels.copy()
    unknown[np.flatnonzero(dataset.splits.train[2])[0]] = -1
    with pytest.raises(InputError, match="no label"):
        Supervision.of(unknown, dataset.splits)
    method = make("gcn", dataset)[0]
    with pytest.raises(InputError, match="labels"):
        train(method, method.prepare(dataset.graph, CPU), seed=0)


def test_the_record_tells_what_the_models_saw_apart_and_nothing_else():
    dataset = make_dataset(count=1)
    record = Supervision.of(dataset.labels, dataset.splits).record()
    assert (record["models"], record["classes"]) == (10, 3)
    parts = {part: np.flatnonzero(getattr(dataset.splits, part)[0]) for part in ("train", "test")}
    relabelled = {part: shuffled(dataset.labels, nodes) for part, nodes in parts.items()}
    assert Supervision.of(relabelled["test"], dataset.splits).record() == record
    assert Supervision.of(relabelled["train"], dataset.splits).record() != record
    splits = dataset.splits
    swapped = Splits(splits.validation, splits.train, splits.test, source="swapped")
    assert Supervision.of(dataset.labels, swapped).record() != record


def mean_score(name, dataset, **settings):
    scores = class_scores(name, dataset, **settings)
    return score_predictions(scores, dataset.labels, dataset.splits, metric=dataset.metric).mean


def test_cora_gcn_is_good_and_the_mlp_far_below(cora):
    settings = {"steps": 40, "hidden": 16, "learning_rate": 0.03}
    gcn, mlp = (mean_score(name, cora, **settings) for name in ("gcn", "mlp"))
    assert gcn > 79
    assert 50 < mlp < gcn - 15


def test_chameleon_trains_a_model_per_split_that_uses_edges(chameleon):
    settings = {"steps": 40, "hidden": 16, "learning_rate": 0.05, "dropout": 0.0, "weight_decay": 0.0}
    assert len(chameleon.splits) == 10
    gcn, mlp = (mean_score(name, chameleon, normalise_features=False, **settings) for name in ("gcn", "mlp"))
    # An untrained encoder under a linear probe stays below 40.
    assert gcn > 52 and 35 < mlp < gcn - 5
