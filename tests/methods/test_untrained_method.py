import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch

from spgcl.estimator import Embedder
from spgcl.evaluation import tuned_probe
from spgcl.graph import Graph
from spgcl.methods import create, parameters
from spgcl.methods.untrained import Untrained

CPU = torch.device("cpu")

# Importing PyTorch Geometric runs torch.jit.script once, which torch calls deprecated.
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import torch_geometric  # noqa: F401


def make_graph():
    generator = np.random.default_rng(0)
    sources, targets = generator.integers(0, 39, (2, 90))
    features = generator.normal(size=(40, 5)) * generator.uniform(0.2, 5, (40, 1))
    return Graph.from_edges(sources, targets, features)


def embedded(seed=0, **settings):
    graph = make_graph()
    method = create("untrained", 5, seed=seed, settings={"hidden": 8, **settings})
    return method.embed(method.prepare(graph, CPU))


def test_it_is_the_encoder_spgcl_starts_from():
    graph = make_graph()
    settings = {"hidden": 8, "dropout": 0.5, "batch_norm": "none"}
    start = create("spgcl", 5, seed=4, settings=settings)
    assert torch.equal(embedded(4), start.embed(start.prepare(graph, CPU)))


def test_the_seed_decides_the_weights():
    assert torch.equal(embedded(1), embedded(1)) and not torch.equal(embedded(1), embedded(2))


@pytest.mark.parametrize(
    "change",
    [
        {"layers": 1},
        {"hidden": 9},
        {"activation": "relu"},
        {"normalise_features": False},
        *[{"encoder": kind} for kind in ("gat", "gin", "sage", "mlp")],
    ],
)
def test_every_hyper_parameter_has_an_effect(change):
    assert set(parameters(Untrained)) == {"encoder", "layers", "hidden", "activation", "normalise_features"}
    assert embedded(**change).numpy().tobytes() != embedded().numpy().tobytes()


def accuracy(dataset, name, **settings):
    """Of one split under the tuned probe."""
    parts = {part: getattr(dataset.splits, part)[:1] for part in ("train", "validation", "test")}
    splits = replace(dataset.splits, **parts)
    vectors = Embedder(name, device="cpu", **settings).fit_transform(dataset)
    return tuned_probe(vectors, dataset.labels, splits, strengths=(1e-2, 1e-3, 1e-4)).mean


def test_chameleon_random_convolutions_beat_the_same_encoder_without_edges(chameleon):
    alone = accuracy(chameleon, "untrained", hidden=64, encoder="mlp")
    assert accuracy(chameleon, "untrained", hidden=64) > alone + 10
