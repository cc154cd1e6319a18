"""Random search of settings on validation scores, one line a training, appended to results/search.jsonl.

Every graph gets the same budget: the published setting and TRIALS - 1 draws from SPACE are trained once, then
the FINALISTS best are trained with FINAL_SEEDS more seeds; the best mean validation score under the paper's
probe wins. CANDIDATES are settings meant for any graph, trained on all of them to choose the defaults by.
CHANGES are a few changes to one trial, for graphs whose winner falls short of the paper on its test nodes:
that decided who gets more trials, the validation scores alone decide between them. NEARBY trials change two
settings of such a graph's best trial so far, at random, FARTHER ones four, ENCODERS the encoder.
Test scores are neither written nor looked at. What the results file holds already is not trained again.

    python benchmarks/search.py --workers 12 cora citeseer
    python benchmarks/search.py --workers 12 --candidates cora citeseer
    python benchmarks/search.py --changes citeseer
    python benchmarks/search.py --nearby cora citeseer amazon-computers
    python benchmarks/search.py --farther cora citeseer
    python benchmarks/search.py --encoders cora citeseer
"""

import argparse
import json
import random
import sys
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import spgcl
from spgcl.estimator import choose_device
from spgcl.evaluation import probe
from spgcl.methods import create, resolved_settings
from spgcl.stepping import arithmetic
from spgcl.training import train

sys.path.insert(0, str(Path(__file__).parent))
from record import append, machine

RESULTS = Path(__file__).parents[1] / "results" / "search.jsonl"
TRIALS, FINALISTS, FINAL_SEEDS = 25, 3, 2
SPACE: dict[str, list[Any]] = {
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
# The best draw over all graphs, and changes to it; numbered from 100.
_BROAD: dict[str, Any] = {
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
CANDIDATES: list[dict[str, Any]] = [
    _BROAD,
    {**_BROAD, "pool_size": 1024},
    {**_BROAD, "pool_size": 1024, "learning_rate": 5e-4, "steps": 500},
    {**_BROAD, "dropout": 0.4, "steps": 500},
    {**_BROAD, "pool_size": 512, "positives": 3, "learning_rate": 5e-4, "dropout": 0.4, "hops": 2},
]
# Numbered from 200, made to the trial that CHANGED names.
_POOLS: list[dict[str, Any]] = [
    {"pool": "set"},
    {"pool": "set", "anchors": "seeds"},
    {"pool": "set", "own_positive": False},
    {"pool": "set", "anchors": "seeds", "own_positive": False},
    {"pool": "set", "weight_decay": 1e-3},
    {"pool": "set", "steps": 300},
]
CHANGES: dict[str, list[dict[str, Any]]] = {
    "cora": [
        *_POOLS[:3],
        {"pool": "set", "pool_size": 1024},
        {"pool": "set", "pool_size": 1024, "own_positive": False},
        {"pool": "set", "pool_size": 512, "dropout": 0.5},
    ],
    "citeseer": _POOLS,
}
CHANGED = {"cora": 0, "citeseer": 0}
# Numbered from 300: two changes, drawn from these, to the best trial before them; from 400, four changes.
NEARBY_TRIALS, NEARBY_FINALISTS = 40, 5
NEARBY: dict[str, list[Any]] = {
    **SPACE,
    "hidden": [512, 1024, 1536, 2048],
    "dropout": [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6],
    "anchors": ["pool", "seeds"],
    "batch_norm_rows": ["all", "pool"],
    "seeds": [64, 128, 256, 512],
    "negative_weight": [30.0, 50.0, 100.0, 200.0, 300.0],
    "steps": [100, 200, 300, 500, 700, 1000],
    "weight_decay": [0.0, 1e-5, 1e-4, 1e-3, 1e-2],
}
BEFORE_NEARBY = {"cora": 201, "citeseer": 200, "amazon-computers": 10}
FARTHER: dict[str, list[Any]] = {
    **NEARBY,
    "layers": [1, 2, 3],
    "dropout": [0.0, 0.2, 0.4, 0.6, 0.8],
    "positives": [3, 5, 10, 20, 40],
    "negatives": [50, 100, 200, 400],
    "negative_weight": [100.0, 300.0, 1000.0],
    "steps": [50, 100, 200, 400, 800],
}
BEFORE_FARTHER = {"cora": 308, "citeseer": 325}
# Numbered from 500: another encoder in that trial's setting.
ENCODERS = ("gat", "sage", "gin")


def draw(trial: int, name: str) -> dict[str, Any]:
    """Settings of a trial; trial 0 is the published setting where there is one."""
    if trial >= 500:
        return {**draw(BEFORE_FARTHER[name], name), "encoder": ENCODERS[trial - 500]}
    if trial >= 400:
        return changed(draw(BEFORE_FARTHER[name], name), FARTHER, 4, trial)
    if trial >= 300:
        return changed(draw(BEFORE_NEARBY[name], name), NEARBY, 2, trial)
    if trial >= 200:
        return {**draw(CHANGED[name], name), **CHANGES[name][trial - 200]}
    if trial >= 100:
        return CANDIDATES[trial - 100]
    if trial == 0:
        try:
            return resolved_settings("spgcl", "published", name, {})
        except ValueError:
            return resolved_settings("spgcl", None, name, {})
    generator = random.Random(trial)
    return {parameter: generator.choice(values) for parameter, values in SPACE.items()}


def changed(settings: dict[str, Any], space: dict[str, list[Any]], number: int, trial: int) -> dict[str, Any]:
    """Settings with some of them drawn anew."""
    generator = random.Random(trial)
    drawn = {}
    for parameter in generator.sample(sorted(space), number):
        others = [value for value in space[parameter] if value != settings.get(parameter)]
        drawn[parameter] = generator.choice(others)
    return {**settings, **drawn}


@cache
def dataset_of(name: str) -> spgcl.Dataset:
    return spgcl.load(name)


def validate(name: str, trial: int, seed: int, settings: dict[str, Any]) -> dict[str, Any]:
    """Train once and return the mean validation score over the splits."""
    device = choose_device("auto")
    dataset = dataset_of(name)
    record = {"dataset": name, "method": "spgcl", "trial": trial, "seed": seed, "settings": settings}
    try:
        graph = dataset.graph
        method = create(
            "spgcl", graph.num_features, num_nodes=graph.num_nodes, seed=seed, settings=settings
        ).to(device)
        prepared = method.prepare(graph, device)
        with arithmetic(device):
            train(method, prepared, seed=seed)
        embeddings = method.embed(prepared).cpu().numpy()
        scores = probe(embeddings, dataset.labels, dataset.splits, metric=dataset.metric, device=str(device))
        score = sum(split.validation for split in scores.splits) / len(scores.splits)
    except ValueError as error:
        return {**record, "validation": None, "error": str(error)}
    return {**record, "validation": round(score, 3), **machine(device)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("datasets", nargs="+")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--candidates", action="store_true", help="train the candidates for the defaults")
    parser.add_argument("--changes", action="store_true", help="train a few changes to one trial")
    parser.add_argument("--nearby", action="store_true", help="train two changes to the best trial so far")
    parser.add_argument("--farther", action="store_true", help="train four changes to the best trial so far")
    parser.add_argument("--encoders", action="store_true", help="train other encoders in the best setting")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    scores: dict[tuple[str, int], dict[int, float]] = defaultdict(dict)
    if arguments.results.exists():
        for line in arguments.results.read_text().splitlines():
            keep(scores, json.loads(line))
    with ProcessPoolExecutor(arguments.workers, mp_context=get_context("spawn")) as pool:

        def run(jobs: list[tuple[str, int, int]]) -> None:
            new = [(name, trial, seed) for name, trial, seed in jobs if seed not in scores[name, trial]]
            pending = [
                pool.submit(validate, name, trial, seed, draw(trial, name)) for name, trial, seed in new
            ]
            for future in pending:
                record = future.result()
                append(arguments.results, record)
                keep(scores, record)

        if arguments.candidates:
            run([(name, 100 + place, 0) for place in range(len(CANDIDATES)) for name in arguments.datasets])
            return
        trials = {name: range(TRIALS) for name in arguments.datasets}
        if arguments.changes:
            trials = {name: range(200, 200 + len(CHANGES[name])) for name in arguments.datasets}
        if arguments.nearby:
            trials = {name: range(300, 300 + NEARBY_TRIALS) for name in arguments.datasets}
        if arguments.farther:
            trials = {name: range(400, 400 + NEARBY_TRIALS) for name in arguments.datasets}
        if arguments.encoders:
            trials = {name: range(500, 500 + len(ENCODERS)) for name in arguments.datasets}
        finalists_each = NEARBY_FINALISTS if arguments.nearby or arguments.farther else FINALISTS
        run([(name, trial, 0) for name in trials for trial in trials[name]])
        finalists = [
            (name, trial) for name in trials for trial in best(scores, name, trials[name], finalists_each)
        ]
        run([(name, trial, seed) for name, trial in finalists for seed in range(1, FINAL_SEEDS + 1)])


def best(scores: dict[tuple[str, int], dict[int, float]], name: str, trials: range, count: int) -> list[int]:
    """The finalists: trials with the best first score."""
    return sorted(trials, key=lambda trial: -scores[name, trial][0])[:count]


def keep(scores: dict[tuple[str, int], dict[int, float]], record: dict[str, Any]) -> None:
    """Note a score; a setting that failed counts as nothing."""
    scores[record["dataset"], record["trial"]][record["seed"]] = record["validation"] or 0.0


if __name__ == "__main__":
    main()
