"""What a short training adds on Cora, whose edges join nodes of one class: without that, little."""

import pytest
from made_methods import fresh, standardised_score

from spgcl.methods import METHODS
from spgcl.training.loop import train

# A fraction of full training; the narrower the encoder, the less an untrained one can do.
FLOORS = {
    "bgrl": {"hidden": 32, "embedding_width": 16, "predictor_width": 32, "steps": 20},
    "afgrl": {
        "hidden": 32,
        "predictor_width": 32,
        "clusters": 10,
        "clusterings": 1,
        "cluster_steps": 3,
        "steps": 15,
    },
    "selene": {"hidden": 32, "steps": 20},
}
REBUILT = {
    "hidden": 16,
    "embedding_width": 8,
    "steps": 100,
    "learning_rate": 0.01,
    "normalise_features": False,
}


# Steps at rate zero settle batch norm, too, which alone makes embeddings better.
@pytest.mark.parametrize(("name", "rate"), [("bgrl", 0.03), ("afgrl", 0.05), ("selene", 0.03)])
def test_training_briefly_beats_training_at_rate_zero(name, rate, cora):
    def accuracy(learning_rate):
        settings = {**FLOORS[name], "learning_rate": learning_rate}
        method, prepared = fresh(METHODS[name], cora.graph, **settings)
        train(method, prepared, seed=0)
        return standardised_score(method, prepared, cora, epochs=100)

    assert accuracy(rate) > accuracy(0.0) + 10


@pytest.mark.parametrize("name", ["gae", "vgae"])
def test_training_briefly_beats_the_untrained_encoder(name, cora):
    method, prepared = fresh(METHODS[name], cora.graph, **REBUILT)
    untrained = standardised_score(method, prepared, cora, epochs=200)
    train(method, prepared, seed=0)
    assert standardised_score(method, prepared, cora, epochs=200) > untrained + 20
