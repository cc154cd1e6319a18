"""What benchmarks/search.py draws settings from: spaces a method, and further rounds for some."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
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

# Settings meant for any graph: the best draw over all graphs, and changes to it.
_BROAD: Settings = {
    "hidden": 1024,
    "dropout": 0.6,
    "batch_norm": "plain",
    "normalise_features": True,
    "head_input": "relu",
    "head_activation": "relu",
    "seeds": 256,
    "hops": 3,
    "pool": "lists",
    "pool_size": 256,
    "own_positive": False,
    "positives": 5,
    "negative_weight": 300.0,
    "steps": 300,
    "learning_rate": 1e-3,
    "weight_decay": 1e-4,
}
CANDIDATES: list[Settings] = [
    _BROAD,
    {**_BROAD, "pool_size": 1024},
    {**_BROAD, "pool_size": 1024, "learning_rate": 5e-4, "steps": 500},
    {**_BROAD, "dropout": 0.4, "steps": 500},
    {**_BROAD, "pool_size": 512, "positives": 3, "learning_rate": 5e-4, "dropout": 0.4, "hops": 2},
    {**_BROAD, "seeds": 512, "pool": "set", "learning_rate": 5e-4},
]
# Drawn for the same purpose: large pools, few steps.
COMMON: Space = {
    "hidden": [512, 1024],
    "dropout": [0.0, 0.2, 0.4, 0.6],
    "batch_norm": ["none", "plain", "affine"],
    "normalise_features": [False, True],
    "head_input": ["plain", "relu"],
    "head_activation": ["relu", "prelu"],
    "seeds": [256, 512, 1024],
    "hops": [1, 2, 3],
    "pool": ["set", "lists"],
    "pool_size": [512, 1024],
    "own_positive": [False, True],
    "positives": [3, 5, 10],
    "negative_weight": [30.0, 100.0, 300.0],
    "steps": [50, 100, 200, 300],
    "learning_rate": [3e-4, 5e-4, 1e-3],
    "weight_decay": [0.0, 1e-5, 1e-4, 1e-3],
}
# Changes to the drawn setting that was best over the graphs: three a trial.
CLOSER: Space = {
    "hidden": [1024, 1536],
    "dropout": [0.4, 0.5, 0.6, 0.7, 0.8],
    "normalise_features": [False, True],
    "head_input": ["plain", "relu"],
    "head_activation": ["relu", "prelu"],
    "seeds": [128, 256, 512],
    "hops": [1, 2, 3],
    "pool": ["set", "lists"],
    "pool_size": [256, 512, 1024],
    "own_positive": [False, True],
    "positives": [3, 5, 10],
    "negative_weight": [100.0, 200.0, 300.0, 500.0],
    "steps": [200, 300, 500],
    "learning_rate": [3e-4, 5e-4, 1e-3],
    "weight_decay": [1e-5, 1e-4, 1e-3],
}
_BEST_DRAW = 17
# Made to the published setting.
_POOLS: list[Settings] = [
    {"pool": "set"},
    {"pool": "set", "anchors": "seeds"},
    {"pool": "set", "own_positive": False},
    {"pool": "set", "anchors": "seeds", "own_positive": False},
    {"pool": "set", "weight_decay": 1e-3},
    {"pool": "set", "steps": 300},
]
NEARBY: Space = {
    **SPGCL,
    "hidden": [512, 1024, 1536, 2048],
    "dropout": [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6],
    "anchors": ["pool", "seeds"],
    "batch_norm_rows": ["all", "pool"],
    "seeds": [64, 128, 256, 512],
    "negative_weight": [30.0, 50.0, 100.0, 200.0, 300.0],
    "steps": [100, 200, 300, 500, 700, 1000],
    "weight_decay": [0.0, 1e-5, 1e-4, 1e-3, 1e-2],
}
FARTHER: Space = {
    **NEARBY,
    "layers": [1, 2, 3],
    "dropout": [0.0, 0.2, 0.4, 0.6, 0.8],
    "positives": [3, 5, 10, 20, 40],
    "negatives": [50, 100, 200, 400],
    "negative_weight": [100.0, 300.0, 1000.0],
    "steps": [50, 100, 200, 400, 800],
}
ENCODERS = ("gat", "sage", "gin")
# Pools of most of a small graph, and fewer steps: every trial draws the first three.
LARGE: Space = {
    "seeds": [512, 1024, 2048],
    "pool_size": [512, 1024, 2048, 4096],
    "steps": [50, 100, 150, 200, 300, 400],
    "hidden": [512, 1024, 1536, 2048],
    "dropout": [0.0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7],
    "normalise_features": [False, True],
    "head_input": ["plain", "relu"],
    "head_activation": ["relu", "prelu"],
    "hops": [1, 2, 3],
    "pool": ["set", "lists"],
    "anchors": ["pool", "seeds"],
    "own_positive": [False, True],
    "positives": [3, 5, 10, 15, 20],
    "negatives": [100, 200, 400],
    "negative_weight": [30.0, 50.0, 100.0, 200.0, 400.0],
    "learning_rate": [3e-4, 5e-4, 1e-3, 2e-3],
    "weight_decay": [0.0, 1e-5, 1e-4, 1e-3, 1e-2],
}
# The trial that a round's changes are made to: the best before it.
BEFORE: dict[str, dict[str, int]] = {
    "nearby": {"cora": 201, "citeseer": 200, "amazon-computers": 10},
    "farther": {"cora": 308, "citeseer": 325},
    "encoders": {"cora": 308, "citeseer": 325},
    "large": {"cora": 308, "citeseer": 325},
}


# The defaults as a trial, for graphs whose first trial is a published setting.
DEFAULTS = 50
# The preset of a score whose setting is the best of as many as every method has, where a method had more.
DRAWN = "drawn"
# The first trial for fewer steps, where a publication stops by validation accuracy, which needs labels.
LENGTHS = (20, 50, 100, 200, 500)
FIRST_LENGTH = 60
FIRST_CHANGE = 200


# For a method short of the paper on a graph: one of its trials, and changes to it.
CHANGES: dict[tuple[str, str], tuple[int, list[Settings]]] = {
    ("spgcl", "cora"): (
        0,
        [
            *_POOLS[:3],
            {"pool": "set", "pool_size": 1024},
            {"pool": "set", "pool_size": 1024, "own_positive": False},
            {"pool": "set", "pool_size": 512, "dropout": 0.5},
        ],
    ),
    ("spgcl", "citeseer"): (0, _POOLS),
    ("vgae", "citeseer"): (
        DEFAULTS,
        [
            {"steps": 100},
            {"steps": 150},
            {"steps": 100, "negative_ratio": 0},
            {"steps": 100, "dropout": 0.5},
            {"steps": 100, "embedding_width": 512},
            {"steps": 100, "weight_decay": 1e-4},
        ],
    ),
    ("bgrl", "citeseer"): (
        16,
        [
            {"steps": 100},
            {"steps": 50},
            {"steps": 100, "normalise_features": False},
            {"steps": 400, "learning_rate": 5e-4},
            {"hidden": 1024},
            {"drop_edges_1": 0.6, "mask_features_1": 0.5},
        ],
    ),
    ("grace", "citeseer"): (
        0,
        [
            {"widening": 1, "hidden": 512},
            {"widening": 1, "mask_features_first": 0.5, "mask_features_second": 0.5},
            {"widening": 1, "hidden": 512, "mask_features_first": 0.5, "mask_features_second": 0.5},
            {"widening": 1, "hidden": 512, "steps": 100},
            {"widening": 1, "normalise_features": False, "steps": 50},
            {"widening": 1, "drop_edges_first": 0.4, "drop_edges_second": 0.4},
            {"widening": 2},
            {"widening": 2, "drop_edges_first": 0.4, "drop_edges_second": 0.4},
        ],
    ),
    ("gca", "citeseer"): (
        10,
        [
            {"hidden": 256},
            {"hidden": 512},
            {"hidden": 512, "learning_rate": 1e-3, "steps": 100},
            {"mask_features_second": 0.5},
            {"steps": 50},
            {"temperature": 0.9},
            {"widening": 2},
            {"widening": 2, "mask_features_second": 0.5},
        ],
    ),
    ("deepwalk", "pubmed"): (
        24,
        [
            {"window": 20},
            {"window": 20, "steps": 2000},
            {"steps": 2000},
            {"learning_rate": 0.025},
            {"hidden": 128},
            {"hidden": 128, "window": 20},
        ],
    ),
}
MOST_CHANGES = max(len(changes) for _, changes in CHANGES.values())
FIRST_NEARBY = 300
FIRST_FARTHER = 400
# For those still short after it, by round: the best trial so far, of whose settings every trial draws some
# anew.
BEFORE_OF: dict[str, dict[tuple[str, str], int]] = {
    "nearby": {
        ("vgae", "citeseer"): 205,
        ("bgrl", "citeseer"): 200,
        ("grace", "citeseer"): 206,
        ("gca", "citeseer"): 203,
    },
    "farther": {("bgrl", "citeseer"): 304, ("grace", "citeseer"): 325},
}
# What is drawn then and not before.
ALSO: dict[str, Space] = {"grace": {"widening": [1, 2]}, "gca": {"widening": [1, 2]}}


@dataclass(frozen=True)
class Round:
    """A number of trials for each graph it is run on.

    Attributes:
        first: Number of its first trial.
        trials: How many trials there are; a graph may have fewer.
        finalists: Best ones that are trained with more seeds.
        more_seeds: How many more.
        settings: From a graph and a trial's number to its settings.
    """

    first: int
    trials: int
    finalists: int
    more_seeds: int
    settings: Callable[[str, int], Settings]

    def best(self, first_scores: Mapping[Trial, float]) -> list[Trial]:
        """The finalists: trials with the best first score."""
        return sorted(first_scores, key=lambda trial: -first_scores[trial])[: self.finalists]


def own_preset(method: str, graph: str) -> str | None:
    """The published preset where it has the graph, else None: the defaults."""
    return "published" if graph in known_graphs("published", method) else None


def drawn(method: str, graph: str, trial: int) -> Settings:
    """A draw from the method's space; trial 0 is the published setting, or else the defaults."""
    if trial >= FIRST_NEARBY:
        name, number = ("farther", 4) if trial >= FIRST_FARTHER else ("nearby", 2)
        best = drawn(method, graph, BEFORE_OF[name][method, graph])
        return _changed(best, {**SPACES[method], **ALSO.get(method, {})}, number, trial)
    if trial >= FIRST_CHANGE:
        changed, changes = CHANGES[method, graph]
        return {**drawn(method, graph, changed), **changes[trial - FIRST_CHANGE]}
    if trial >= FIRST_LENGTH:
        return {**drawn(method, graph, 0), "steps": LENGTHS[trial - FIRST_LENGTH]}
    if trial == DEFAULTS:
        return resolved_settings(method, None, graph, {})
    if trial == 0:
        return resolved_settings(method, own_preset(method, graph), graph, {})
    return _draw(SPACES[method], trial)


def _draw(space: Space, trial: int) -> Settings:
    generator = random.Random(trial)
    return {parameter: generator.choice(values) for parameter, values in space.items()}


def _changed(settings: Settings, space: Space, number: int, trial: int, always: int = 0) -> Settings:
    """Settings with some of them drawn anew; the first `always` of the space among them."""
    generator = random.Random(trial)
    names = list(space)
    chosen = names[:always] + generator.sample(sorted(names[always:]), number)
    anew = {}
    for parameter in chosen:
        others = [value for value in space[parameter] if value != settings.get(parameter)]
        anew[parameter] = generator.choice(others)
    return {**settings, **anew}


def _before(round_name: str, graph: str) -> Settings:
    return spgcl_settings(graph, BEFORE[round_name][graph])


ROUNDS: dict[str, Round] = {
    "draws": Round(0, 25, 3, 2, lambda graph, trial: drawn("spgcl", graph, trial)),
    "defaults": Round(DEFAULTS, 1, 1, 2, lambda graph, trial: drawn("spgcl", graph, trial)),
    "lengths": Round(FIRST_LENGTH, len(LENGTHS), 0, 0, lambda graph, trial: drawn("spgcl", graph, trial)),
    "candidates": Round(100, len(CANDIDATES), 0, 0, lambda _, trial: CANDIDATES[trial - 100]),
    "common": Round(120, 48, 0, 0, lambda _, trial: _draw(COMMON, trial)),
    "closer": Round(170, 30, 0, 0, lambda _, trial: _changed(_draw(SPGCL, _BEST_DRAW), CLOSER, 3, trial)),
    "changes": Round(FIRST_CHANGE, MOST_CHANGES, 3, 2, lambda graph, trial: drawn("spgcl", graph, trial)),
    "nearby": Round(
        FIRST_NEARBY, 40, 5, 2, lambda graph, trial: _changed(_before("nearby", graph), NEARBY, 2, trial)
    ),
    "farther": Round(
        FIRST_FARTHER, 40, 5, 2, lambda graph, trial: _changed(_before("farther", graph), FARTHER, 4, trial)
    ),
    "encoders": Round(
        500, 3, 3, 2, lambda graph, trial: {**_before("encoders", graph), "encoder": ENCODERS[trial - 500]}
    ),
    "large": Round(
        600, 100, 8, 4, lambda graph, trial: _changed(_before("large", graph), LARGE, 3, trial, always=3)
    ),
}


# Rounds that `drawn` has settings of for every method; the others are SP-GCL's, but for what
# CHANGES and BEFORE_OF name.
FOR_ALL_METHODS = ("draws", "defaults", "lengths")
# Graphs whose winner SP-GCL owes to a larger budget than all methods have.
LARGER_BUDGET = frozenset(graph for graphs in BEFORE.values() for graph in graphs)


def changed_graphs(method: str) -> list[str]:
    """Graphs on which changes to one of a method's trials were tried."""
    return [graph for each, graph in CHANGES if each == method]


def trials_of(method: str, graph: str, round_name: str) -> int:
    """How many trials of a round a method and graph have."""
    return len(CHANGES[method, graph][1]) if round_name == "changes" else ROUNDS[round_name].trials


def has_round(method: str, graph: str, round_name: str) -> bool:
    """Whether there are settings for a method and graph in a round."""
    if round_name == "changes":
        return graph in changed_graphs(method)
    if (method, graph) in BEFORE_OF.get(round_name, {}):
        return True
    return round_name in FOR_ALL_METHODS or (method == "spgcl" and graph in BEFORE.get(round_name, [graph]))


def round_of(trial: int) -> str:
    """The round a trial belongs to."""
    return max((name for name in ROUNDS if ROUNDS[name].first <= trial), key=lambda name: ROUNDS[name].first)


def spgcl_settings(graph: str, trial: int) -> Settings:
    """Settings of any trial of SP-GCL."""
    return ROUNDS[round_of(trial)].settings(graph, trial)
