"""Baselines on CUDA: a replayed step equals a computed one, with schedules and resuming."""

from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch

import spgcl
from spgcl.engine.device import arithmetic
from spgcl.engine.tensors import GraphTensors, SparseMatrix
from spgcl.methods import METHODS, Supervision, create, parameters
from spgcl.methods.method import Prepared
from spgcl.methods.parts.augment import drop_edges, mask_features, shuffle_nodes
from spgcl.training.loop import train
from spgcl.training.step import WARM_UP, Checkpoint, Step

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")

CUDA = torch.device("cuda")
STEPS = 12
SMALL = {"hidden": 24, "embedding_width": 16, "predictor_width": 20, "projection": 16, "steps": STEPS}
SMALL |= {"clusters": 8, "clusterings": 2, "cluster_steps": 3, "negatives": 2, "learning_rate": 0.01}
# GMI with all its terms; heat over a small graph makes rows nearly equal, which batch norm blows up.
SMALL |= {"structure_weight": 1.0, "layers": 2, "activation": "prelu", "diffusion": "ppr"}
STATIC = ["bgrl", "grace", "gca", "mlp", "gcn", "afgrl", "dgi", "mvgrl", "gae", "vgae", "gmi"]


def make_graph(*, sparse: bool, directed: bool) -> spgcl.Graph:
    """Two hundred nodes, the last ones without edges."""
    generator = np.random.default_rng(0)
    sources, targets = generator.integers(0, 190, (2, 700))
    features = generator.random((200, 150), dtype=np.float32)
    if sparse:
        features *= generator.random(features.shape) < 0.01
    return spgcl.Graph.from_edges(sources, targets, features, directed=directed)


def on_device(name: str, *, sparse: bool, directed: bool) -> tuple[Any, Prepared]:
    graph = make_graph(sparse=sparse, directed=directed)
    supervision = None
    if METHODS[name].supervised:
        labels = np.random.default_rng(1).integers(0, 3, 200)
        supervision = Supervision.of(labels, spgcl.datasets.random_splits(labels, seed=0, count=2))
    settings = {key: value for key, value in SMALL.items() if key in parameters(METHODS[name])}
    task = supervision.task if supervision else None
    method = create(name, 150, num_nodes=200, task=task, seed=0, settings=settings)
    prepared = method.to(CUDA).prepare(graph, CUDA, supervision)
    assert isinstance(prepared.graph.features, SparseMatrix) == sparse
    return method, prepared


def trained(
    name: str,
    start: Checkpoint | None = None,
    *,
    sparse: bool = False,
    directed: bool = False,
    precision: str = "float32",
) -> tuple[list[float], torch.Tensor, dict[int, Checkpoint]]:
    method, prepared = on_device(name, sparse=sparse, directed=directed)
    saved: dict[int, Checkpoint] = {}

    def save(checkpoint: Checkpoint) -> None:
        saved[checkpoint.step] = deepcopy(checkpoint)

    with arithmetic(CUDA, precision, deterministic=True):
        history = train(method, prepared, seed=0, start=start, save=save, save_every=0.0)
    return history.losses, method.embed(prepared), saved


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize("name", STATIC)
def test_captured_training_equals_computed_training(
    name: str, directed: bool, sparse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    recordings: list[int] = []
    record = Step._capture

    def counted(step: Step, number: int) -> Any:
        recordings.append(number)
        return record(step, number)

    monkeypatch.setattr(Step, "_capture", counted)
    replayed, vectors, _ = trained(name, sparse=sparse, directed=directed)
    assert recordings == [WARM_UP]
    monkeypatch.setattr("spgcl.training.step.WARM_UP", 10**6)
    computed, expected, _ = trained(name, sparse=sparse, directed=directed)
    assert len(replayed) == STEPS and recordings == [WARM_UP]
    assert replayed == pytest.approx(computed, rel=1e-4)
    assert len(set(replayed[WARM_UP:])) > 1
    torch.testing.assert_close(vectors, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", ["grace", "gca", "gae", "vgae", "gmi", "afgrl"])
def test_captured_training_equals_computed_training_in_tf32(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    replayed, vectors, _ = trained(name, precision="tf32")
    monkeypatch.setattr("spgcl.training.step.WARM_UP", 10**6)
    computed, expected, _ = trained(name, precision="tf32")
    assert replayed == pytest.approx(computed, rel=1e-4)
    torch.testing.assert_close(vectors, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", ["bgrl", "grace", "gcn"])
def test_resumed_training_goes_on_as_it_would_have(name: str) -> None:
    losses, vectors, saved = trained(name)
    resumed, expected, _ = trained(name, start=saved[7])
    assert resumed == pytest.approx(losses, rel=1e-4)
    torch.testing.assert_close(vectors, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_views_have_the_products_and_gradients_of_their_dense_matrices(directed: bool) -> None:
    graph = GraphTensors.of(make_graph(sparse=True, directed=directed), CUDA)
    generator = torch.Generator(CUDA).manual_seed(0)
    view = mask_features(drop_edges(graph, 0.3, generator), 0.3, generator)
    assert 200 < int(view.adjacency.values.count_nonzero()) < len(graph.adjacency.columns)
    for matrix in (view.adjacency, view.features, shuffle_nodes(view, generator).features):
        assert isinstance(matrix, SparseMatrix)
        assert matrix.capturable
        other = torch.randn(matrix.shape[1], 40, device=CUDA, requires_grad=True)
        weights = torch.randn(200, 40, device=CUDA)
        (found,) = torch.autograd.grad(((matrix @ other) * weights).sum(), other)
        torch.testing.assert_close(matrix @ other, matrix.dense() @ other, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(found, matrix.dense().T @ weights, rtol=1e-4, atol=1e-5)
