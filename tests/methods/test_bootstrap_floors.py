"""What a short training on Cora adds, for methods without negatives."""

import pytest
import torch

from spgcl.evaluation import probe
from spgcl.methods import METHODS
from spgcl.training import train

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


# Steps at rate zero settle batch norm, too, which alone makes embeddings better. Columns are standardised, as
# training also makes embeddings larger, which a probe of fixed rate takes for better ones.
@pytest.mark.parametrize(("name", "rate"), [("bgrl", 0.03), ("afgrl", 0.05), ("selene", 0.03)])
def test_training_briefly_beats_training_at_rate_zero(name, rate, cora):
    def accuracy(learning_rate):
        torch.manual_seed(0)
        method = METHODS[name](cora.graph.num_features, learning_rate=learning_rate, **FLOORS[name])
        prepared = method.prepare(cora.graph, CPU)
        train(method, prepared, seed=0)
        vectors = method.embed(prepared)
        vectors = (vectors - vectors.mean(dim=0)) / vectors.std(dim=0)
        return probe(vectors, cora.labels, cora.splits, epochs=100, learning_rate=0.01).mean

    assert accuracy(rate) > accuracy(0.0) + 10
