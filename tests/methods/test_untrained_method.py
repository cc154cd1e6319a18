import torch
from graphs import CPU, make_graph
from made_methods import split_score

from spgcl.evaluation import tuned_probe
from spgcl.methods import create


def test_it_is_the_encoder_spgcl_starts_from():
    graph = make_graph(uneven=True)
    method = create("untrained", 6, seed=4, settings={"hidden": 8})
    start = create("spgcl", 6, seed=4, settings={"hidden": 8, "dropout": 0.5, "batch_norm": "none"})
    assert torch.equal(method.embed(method.prepare(graph, CPU)), start.embed(start.prepare(graph, CPU)))


def test_chameleon_random_convolutions_beat_the_same_encoder_without_edges(chameleon):
    def score(**settings):
        tuned = {"score": tuned_probe, "scoring": {"strengths": (1e-2, 1e-3, 1e-4)}}
        return split_score(chameleon, "untrained", hidden=64, splits=1, **tuned, **settings)

    assert score() > score(encoder="mlp") + 10
