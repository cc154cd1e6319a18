import pytest
import torch

from spgcl.datasets import load
from spgcl.methods import create
from spgcl.training import train


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("name", "settings"), [("spgcl", {"hidden": 256, "steps": 10}), ("gae", {"hidden": 64, "steps": 10})]
)
def test_the_same_seed_gives_the_same_bytes_on_several_threads(two_threads, name, settings):
    graph = load("csbm-homophilic").graph

    def outcome():
        method = create(name, graph.num_features, num_nodes=graph.num_nodes, seed=0, settings=settings)
        prepared = method.prepare(graph, torch.device("cpu"))
        train(method, prepared, seed=0)
        return method.embed(prepared).numpy().tobytes()

    first = outcome()
    assert all(outcome() == first for _ in range(2))
