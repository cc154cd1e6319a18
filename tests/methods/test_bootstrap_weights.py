"""Methods that bootstrap: one encoder is trained, the other follows it."""

import re

import pytest
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
