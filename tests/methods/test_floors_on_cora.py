"""What a short training adds on Cora, whose edges join nodes of one class: without that, little."""

import pytest
import torch

from spgcl.evaluation import probe
from spgcl.methods import METHODS
from spgcl.training.loop import train

CPU = torch.device("cpu")
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


def accuracy_of(method, prepared, dataset, epochs):
    """Columns are standardised: a probe of fixed rate takes the larger embeddings of training for better."""
    vectors = method.embed(prepared)
    vectors = (vectors - vectors.mean(dim=0)) / vectors.std(dim=0)
    return probe(vectors, dataset.labels, dataset.splits, epochs=epochs, learning_rate=0.01).mean


# Steps at rate zero settle batch norm, too, which alone makes embeddings better.
@pytest.mark.parametrize(("name", "rate"), [("bgrl", 0.03), ("afgrl", 0.05), ("selene", 0.03)])
def test_training_briefly_beats_training_at_rate_zero(name, rate, cora):
    def accuracy(learning_rate):
        torch.manual_seed(0)
        method = METHODS[name](cora.graph.num_features, learning_rate=learning_rate, **FLOORS[name])
        prepared = method.prepare(cora.graph, CPU)
        train(method, prepared, seed=0)
        return accuracy_of(method, prepared, cora, epochs=100)

    assert accuracy(rate) > accuracy(0.0) + 10


@pytest.mark.parametrize("name", ["gae", "vgae"])
def test_training_briefly_beats_the_untrained_encoder(name, cora):
    torch.manual_seed(0)
    method = METHODS[name](cora.graph.num_features, **REBUILT)
    prepared = method.prepare(cora.graph, CPU)
    untrained = accuracy_of(method, prepared, cora, epochs=200)
    train(method, prepared, seed=0)
    assert accuracy_of(method, prepared, cora, epochs=200) > untrained + 20
