import pytest
from graphs import CPU
from made_methods import trained_bytes

from spgcl.datasets import load
from spgcl.methods import METHODS, Supervision, create, parameters

# Large enough for torch to share the work among threads, and small enough for seconds in all.
SIZES = {"hidden": 64, "steps": 3, "embedding_width": 64, "predictor_width": 64, "projection": 64}
SIZES |= {"walks": 2, "walk_length": 10}
OTHERS = {
    "spgcl": {"hidden": 256, "steps": 6},
    "gae": {"steps": 10},
    "gmi": {"structure_weight": 1.0, "activation": "prelu"},
    "mlp": {"hidden": 16},
    "gcn": {"hidden": 16},
    "afgrl": {"steps": 2, "clusters": 20, "clusterings": 1, "cluster_steps": 3},
    "spectral": {"hidden": 16},
}


@pytest.mark.parametrize("name", METHODS)
def test_the_same_seed_gives_the_same_bytes_on_several_threads(use_threads, name):
    use_threads(2)
    data = load("csbm-homophilic")
    graph = data.graph
    supervision = Supervision.of(data.labels, data.splits) if METHODS[name].supervised else None
    task = supervision.task if supervision else None
    wanted = {**SIZES, **OTHERS.get(name, {})}
    settings = {key: value for key, value in wanted.items() if key in parameters(METHODS[name])}

    def outcome():
        method = create(
            name, graph.num_features, num_nodes=graph.num_nodes, task=task, seed=0, settings=settings
        )
        return trained_bytes(method, method.prepare(graph, CPU, supervision))

    assert outcome() == outcome()
