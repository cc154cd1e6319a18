"""What methods add on Chameleon over an encoder that is not trained."""

import pytest
from made_methods import fresh, split_score, standardised_score

from spgcl.methods import METHODS
from spgcl.training.loop import train

# Of GMI: the terms of its paper.
ALL_TERMS = {"layers": 2, "activation": "prelu", "structure_weight": 1.0, "rebuilt_rows": 64}
SHORT = {"splits": 1, "scoring": {"starts": 1, "epochs": 300}}
WALKS = {"hidden": 64, "steps": 150, "learning_rate": 0.05}


@pytest.mark.parametrize(
    ("name", "settings", "untrained", "margin"),
    [
        ("deepwalk", {**WALKS, "walks": 4}, {"hidden": 64}, 8),
        ("node2vec", {**WALKS, "walks": 2, "p": 0.5, "q": 2}, {"hidden": 64}, 8),
        ("spectral", {"hidden": 64}, {"hidden": 64}, 8),
        ("fastrp", {"hidden": 128}, {"hidden": 128}, 8),
        ("raw", SHORT, {"hidden": 128, **SHORT}, 8),
        ("smoothed", SHORT, {"hidden": 128, **SHORT}, 15),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_embeddings_beat_those_of_an_untrained_encoder(name, settings, untrained, margin, chameleon):
    assert (
        split_score(chameleon, name, **settings) > split_score(chameleon, "untrained", **untrained) + margin
    )


# Training hardly improves on a wide encoder with random weights, so these are narrow.
@pytest.mark.parametrize(
    ("name", "settings", "margin"),
    [
        ("dgi", {"hidden": 8, "steps": 100}, 2),
        ("mvgrl", {"hidden": 8, "steps": 100, "keep": 32, "diffusion": "ppr", "normalise_features": True}, 3),
        ("gmi", {"hidden": 16, "steps": 200, "normalise_features": False, **ALL_TERMS}, 1),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_short_training_beats_the_encoder_it_starts_from(name, settings, margin, chameleon):
    settings = {**settings, "batch_norm": "none", "learning_rate": 0.01}
    method, prepared = fresh(METHODS[name], chameleon.graph, **settings)
    untrained = standardised_score(method, prepared, chameleon)
    train(method, prepared, seed=0)
    assert standardised_score(method, prepared, chameleon) > untrained + margin
