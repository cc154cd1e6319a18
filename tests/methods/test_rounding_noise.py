"""What rounding does to weights is not blown up by training."""

import numpy as np
import pytest
import torch
from graphs import CPU, seeded

import spgcl
from spgcl.methods import METHODS, create, parameters
from spgcl.training.loop import train

SMALL = {"hidden": 24, "embedding_width": 16, "predictor_width": 20, "projection": 16, "steps": 12}
SMALL |= {"clusters": 8, "clusterings": 2, "cluster_steps": 3, "negatives": 2, "learning_rate": 0.01}
# GMI with all its terms; heat over a small graph makes rows nearly equal, which batch norm blows up.
SMALL |= {"structure_weight": 1.0, "layers": 2, "activation": "prelu", "diffusion": "ppr"}
SMALL |= {"batch_norm": "affine", "seeds": 200, "positives": 190, "own_positive": True}


def embeddings(name: str, noise: float) -> torch.Tensor:
    generator = np.random.default_rng(0)
    sources, targets = generator.integers(0, 190, (2, 700))
    features = generator.random((200, 150), dtype=np.float32)
    graph = spgcl.Graph.from_edges(sources, targets, features)
    settings = {key: value for key, value in SMALL.items() if key in parameters(METHODS[name])}
    method = create(name, 150, num_nodes=200, seed=0, settings=settings)
    with torch.no_grad():
        for weight in method.parameters():
            weight *= 1 + noise * torch.randn(weight.shape, generator=seeded(1))
    prepared = method.prepare(graph, CPU)
    train(method, prepared, seed=0)
    return method.embed(prepared)


@pytest.mark.parametrize("name", ["spgcl", "dgi", "mvgrl", "gmi", "grace", "gca", "bgrl", "afgrl"])
def test_a_change_in_the_last_bit_of_the_weights_stays_small(name: str) -> None:
    first, second = embeddings(name, 0.0), embeddings(name, 1e-7)

    assert not torch.equal(first, second)
    assert float((first - second).abs().max()) < 1e-3 * float(first.abs().max())
