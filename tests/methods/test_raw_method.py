import graphs
import numpy as np
import pytest
import torch
from graphs import CPU
from scipy import sparse

from spgcl.errors import InputError
from spgcl.methods import create
from spgcl.training.loop import train

UNTRAINED = {
    "raw": {},
    "smoothed": {"hops": 1},
    "untrained": {"hidden": 8},
    "spectral": {"hidden": 8},
    "fastrp": {"hidden": 8},
}


def make_graph(features=None):
    graph = graphs.make_graph(num_features=3)
    return graph if features is None else graph.with_features(features)


@pytest.mark.parametrize("form", ["dense", "sparse", "mostly zeros"])
def test_the_features_come_back_as_they_are(form):
    features = np.random.default_rng(1).normal(size=(40, 50)).astype(np.float32)
    if form != "dense":
        features *= np.random.default_rng(2).random(features.shape) < 0.05
    graph = make_graph(sparse.csr_array(features) if form == "sparse" else features)
    method = create("raw", 50, seed=0)
    embeddings = method.embed(method.prepare(graph, CPU))
    assert embeddings.dtype == torch.float32
    np.testing.assert_array_equal(embeddings.numpy(), features)
    embeddings.zero_()
    np.testing.assert_array_equal(method.embed(method.prepare(graph, CPU)).numpy(), features)


@pytest.mark.parametrize("name", UNTRAINED)
def test_nothing_is_trained(name, monkeypatch):
    def refuse(method):
        raise AssertionError("an optimiser was asked for")

    graph = make_graph()
    method = create(name, 3, num_nodes=40, seed=0, settings=UNTRAINED[name])
    monkeypatch.setattr(type(method), "optimiser", refuse, raising=False)
    prepared = method.prepare(graph, CPU)
    before = method.embed(prepared).numpy().tobytes()
    assert method.loss(prepared, 0, torch.Generator()) is None
    looks = []
    history = train(
        method,
        prepared,
        seed=0,
        save=lambda checkpoint: looks.append(checkpoint),
        save_every=0,
        observe=lambda *_: {"seen": 1.0},
        observe_every=1,
    )
    assert history.finished and history.losses == [] and history.resumed_from is None
    assert history.observations == [{"step": 0, "seen": 1.0}] and not looks
    assert train(method, prepared, seed=0).observations == []
    assert method.embed(prepared).numpy().tobytes() == before


def test_features_too_wide_to_be_dense_are_refused_with_the_bytes():
    wide = sparse.csr_array((40, 10**8), dtype=np.float32)
    for name in ("raw", "smoothed"):
        method = create(name, 10**8, seed=0)
        with pytest.raises(InputError, match=r"16,000,000,000 bytes.* 8,589,934,592"):
            method.prepare(make_graph(wide), CPU)
    joined = create("smoothed", 10**6, seed=0, settings={"joined": True, "hops": 99})
    with pytest.raises(InputError, match=r"16,000,000,000 bytes.*hops.*joined"):
        joined.prepare(make_graph(sparse.csr_array((40, 10**6), dtype=np.float32)), CPU)
