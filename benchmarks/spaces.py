"""What benchmarks/search.py draws settings from: one space per method, and its budget."""

import random
from collections.abc import Mapping
from typing import Any, TypeVar

from spgcl.methods import resolved_settings
from spgcl.methods.presets import known_graphs

Settings = dict[str, Any]
Space = dict[str, list[Any]]
Trial = TypeVar("Trial")

SPGCL: Space = {
    "hidden": [512, 1024, 1536],
    "dropout": [0.0, 0.2, 0.4, 0.6],
    "batch_norm": ["none", "plain", "affine"],
    "normalise_features": [False, True],
    "head_input": ["plain", "relu"],
    "head_activation": ["relu", "prelu"],
    "seeds": [64, 128, 256],
    "hops": [1, 2, 3],
    "pool": ["set", "lists"],
    "pool_size": [256, 512, 1024],
    "own_positive": [False, True],
    "positives": [3, 5, 10, 15],
    "negative_weight": [10.0, 30.0, 100.0, 300.0],
    "steps": [50, 100, 200, 300, 500],
    "learning_rate": [3e-4, 5e-4, 1e-3, 2e-3],
    "weight_decay": [0.0, 1e-5, 1e-4, 1e-3],
}
_SUPERVISED: Space = {
    "hidden": [16, 64, 256, 512],
    "dropout": [0.0, 0.2, 0.5, 0.8],
    "normalise_features": [False, True],
    "steps": [100, 200, 500],
    "learning_rate": [0.003, 0.01, 0.03],
    "weight_decay": [0.0, 5e-5, 5e-4, 5e-3],
}
_AUTO_ENCODER: Space = {
    "hidden": [32, 128, 512],
    "embedding_width": [16, 64, 256, 512],
    "dropout": [0.0, 0.2, 0.5],
    "normalise_features": [False, True],
    "negative_ratio": [0, 1, 5],
    "steps": [100, 200, 500, 1000],
    "learning_rate": [1e-3, 3e-3, 0.01],
    "weight_decay": [0.0, 1e-5, 1e-4],
    "batch_norm": ["none", "plain"],
}
_VIEWS: Space = {
    "hidden": [128, 256, 512, 1024],
    "projection": [32, 128, 256],
    "activation": ["relu", "prelu"],
    "normalise_features": [False, True],
    "drop_edges_first": [0.0, 0.2, 0.4, 0.6],
    "drop_edges_second": [0.0, 0.2, 0.4, 0.6],
    "mask_features_first": [0.0, 0.1, 0.3, 0.5],
    "mask_features_second": [0.0, 0.1, 0.3, 0.5],
    "temperature": [0.2, 0.4, 0.7, 0.9],
    "steps": [20, 50, 100, 200, 500, 1000],
    "learning_rate": [1e-4, 5e-4, 1e-3, 0.01],
    "weight_decay": [0.0, 1e-5, 1e-4],
    "batch_norm": ["none", "plain"],
}
_LOCAL_GLOBAL: Space = {
    "layers": [1, 2],
    "hidden": [256, 512, 1024],
    "activation": ["relu", "prelu"],
    "normalise_features": [False, True],
    "steps": [50, 100, 200, 300, 500],
    "learning_rate": [3e-4, 1e-3, 3e-3],
    "weight_decay": [0.0, 1e-5, 1e-4],
    "batch_norm": ["none", "plain"],
}
_WALKS: Space = {
    "hidden": [64, 128, 256],
    "walk_length": [10, 20, 40, 80],
    "window": [2, 5, 10],
    "negatives": [1, 5, 10],
    "steps": [500, 1000, 2000, 4000],
    "learning_rate": [0.003, 0.01, 0.025, 0.05],
}
SPACES: dict[str, Space] = {
    "spgcl": SPGCL,
    "mlp": _SUPERVISED,
    "gcn": _SUPERVISED,
    "deepwalk": _WALKS,
    "node2vec": {**_WALKS, "p": [0.25, 1.0, 4.0], "q": [0.25, 1.0, 4.0]},
    "selene": {
        "hidden": [128, 256, 512],
        "projection_width": [16, 64, 256],
        "attribute_share": [0.1, 0.2, 0.5, 0.8],
        "structure_inputs": ["walks", "walks_and_attributes"],
        "walk_length": [3, 5, 10],
        "normalise_features": [False, True],
        "drop_edges": [0.0, 0.2, 0.4],
        "mask_features": [0.0, 0.2, 0.4],
        "seeds": [256, 512],
        "steps": [100, 200, 500],
        "learning_rate": [3e-4, 1e-3, 3e-3],
        "weight_decay": [0.0, 1e-5, 1e-4],
    },
    "gae": _AUTO_ENCODER,
    "vgae": {**_AUTO_ENCODER, "divergence_weight": [0.01, 0.1, 1.0]},
    "dgi": _LOCAL_GLOBAL,
    "gmi": {
        **_LOCAL_GLOBAL,
        "own_weight": [0.2, 0.5, 0.8, 1.0],
        "neighbour_weight": [0.2, 0.5, 1.0],
        "structure_weight": [0.0, 0.5, 1.0],
    },
    "mvgrl": {
        **_LOCAL_GLOBAL,
        "diffusion": ["ppr", "heat"],
        "restart": [0.05, 0.1, 0.2, 0.4],
        "time": [3.0, 5.0, 10.0],
    },
    "grace": _VIEWS,
    "gca": {**_VIEWS, "centrality": ["degree", "pagerank", "eigenvector"], "cut_off": [0.5, 0.7, 0.9]},
    "graphcl": {
        "rate": [0.1, 0.2, 0.3, 0.4],
        "hidden": [256, 512, 1024],
        "projection": [128, 512],
        "activation": ["relu", "prelu"],
        "normalise_features": [False, True],
        "temperature": [0.1, 0.2, 0.5, 1.0],
        "steps": [50, 100, 200, 500],
        "learning_rate": [3e-4, 1e-3, 3e-3],
        "weight_decay": [0.0, 1e-5, 1e-4],
        "batch_norm": ["none", "plain"],
    },
    "bgrl": {
        "hidden": [256, 512, 1024],
        "embedding_width": [128, 256, 512, 1024],
        "normalise_features": [False, True],
        "drop_edges_1": [0.0, 0.2, 0.4, 0.6],
        "drop_edges_2": [0.0, 0.2, 0.4, 0.6],
        "mask_features_1": [0.0, 0.1, 0.3, 0.5],
        "mask_features_2": [0.0, 0.1, 0.3, 0.5],
        "decay": [0.97, 0.99, 0.999],
        "steps": [20, 50, 100, 200, 500, 1000, 2000],
        "learning_rate": [1e-4, 5e-4, 1e-3],
        "weight_decay": [1e-5, 1e-4, 1e-3],
        "batch_norm": ["none", "plain", "affine"],
    },
    "afgrl": {
        "layers": [1, 2],
        "hidden": [512, 1024],
        "normalise_features": [False, True],
        "neighbours": [4, 8, 16],
        "clusters": [20, 50, 100],
        "decay": [0.9, 0.99, 0.999],
        "steps": [20, 50, 100, 200, 500, 1000],
        "learning_rate": [1e-4, 5e-4, 1e-3, 5e-3],
        "weight_decay": [0.0, 1e-5, 1e-4],
        "batch_norm": ["none", "plain", "affine"],
    },
}

# How many settings every method is trained with on every graph, how many of the best are trained again, and
# with how many more seeds.
TRIALS, FINALISTS, MORE_SEEDS = 25, 3, 2
# The defaults are a trial of their own, for graphs whose trial 0 is a published setting.
DEFAULTS = 50
# Further candidates for the defaults of methods whose best draw is too far behind the preset `validated`:
# crosses of their three best draws, each value taken from one of them; then for GAE moves of its best draw,
# one value to the next.
CROSSED = {"gae": (24, 12, 17), "dgi": (5, 12, 17)}
MOVED = {"gae": 24}
_CROSSES, _MOVES = range(100, 112), range(112, 122)
CANDIDATES = {"gae": (*_CROSSES, *_MOVES), "dgi": (*_CROSSES,)}
# The preset of a score whose setting is the best of these trials, for a method that had more.
DRAWN = "drawn"
# The preset of a score that was measured with the defaults before they were chosen over all graphs.
EARLIER = "defaults (earlier)"
# The same with a bias that batch norm subtracts again, which changes rounding alone.
EARLIER_WITH_BIAS = "defaults (earlier, bias trained)"


def finalists(first_scores: Mapping[Trial, float]) -> list[Trial]:
    """The trials with the best first score."""
    return sorted(first_scores, key=lambda trial: -first_scores[trial])[:FINALISTS]


def own_preset(method: str, graph: str) -> str | None:
    """The published preset if it has the graph, else None: the defaults."""
    return "published" if graph in known_graphs("published", method) else None


def settings_of(method: str, graph: str, trial: int) -> Settings:
    """A draw from the method's space; trial 0 is the published setting, or else the defaults."""
    if trial == DEFAULTS:
        return resolved_settings(method, None, graph, {})
    if trial == 0:
        return resolved_settings(method, own_preset(method, graph), graph, {})
    generator, space = random.Random(trial), SPACES[method]
    if trial in _CROSSES:
        drawn = [settings_of(method, graph, number) for number in CROSSED[method]]
        return {parameter: generator.choice(drawn)[parameter] for parameter in space}
    if trial in _MOVES:
        best = settings_of(method, graph, MOVED[method])
        return _moves(space, best)[trial - _MOVES.start]
    return {parameter: generator.choice(values) for parameter, values in space.items()}


def _moves(space: Space, settings: Settings) -> list[Settings]:
    """The settings with one value moved to the one before it in the space, or to the one after."""
    moved = []
    for parameter, values in space.items():
        index = values.index(settings[parameter])
        near = [index + step for step in (-1, 1) if 0 <= index + step < len(values)]
        moved += [{**settings, parameter: values[other]} for other in near]
    return moved
