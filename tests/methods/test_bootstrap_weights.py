"""Methods that bootstrap: one encoder is trained, the other follows it."""

import math
import re

import pytest
import torch
from graphs import CPU, make_graph, seeded

from spgcl.methods import create

TINY = {
    "bgrl": {"hidden": 8, "embedding_width": 6, "predictor_width": 7},
    "afgrl": {"hidden": 8, "predictor_width": 7, "neighbours": 5, "clusters": 4},
}


@pytest.mark.parametrize("name", TINY)
def test_only_the_online_encoder_and_the_predictor_are_trained(name):
    method = create(name, 6, seed=0, settings=TINY[name])
    prepared = method.prepare(make_graph(), CPU)
    trained = set(map(id, method.optimiser().weights))
    wanted = {
        f"{part}.{name}": weight
        for part in ("online", "predictor")
        for name, weight in getattr(method, part).named_parameters()
        # Batch norm, which follows, takes such a bias away.
        if not re.search(r"convolutions\.\d\.bias", name)
    }
    assert trained == set(map(id, wanted.values())) and len(wanted) > 8
    method.loss(prepared, 0, seeded()).backward()
    assert all(weight.grad is None for weight in method.target.parameters())
    assert all(weight.grad is not None for weight in wanted.values())


@pytest.mark.parametrize(
    ("name", "weight", "copied"),
    [("bgrl", "0.convolutions.0.weight", False), ("afgrl", "convolutions.0.weight", True)],
)
def test_the_target_follows_with_the_decay_of_the_step(name, weight, copied):
    method = create(name, 6, seed=0, settings={**TINY[name], "decay": 0.8, "steps": 6})
    before, online = method.target.state_dict()[weight].clone(), method.online.state_dict()[weight]
    assert torch.allclose(before, online) == copied
    torch.nn.init.ones_(online)
    method.after_step(2)
    decay = 1 - 0.2 * (math.cos(math.pi * 2 / 6) + 1) / 2
    torch.testing.assert_close(method.target.state_dict()[weight], decay * before + (1 - decay))
