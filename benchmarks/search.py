"""Random search of settings on validation scores, one line a training, appended to results/search.jsonl.

Every method gets the same budget on every graph: the published setting and draws from its space (spaces.py)
are trained once, then the best few with more seeds; the best mean validation score under the paper's probe
(of the model's own predictions, where the method is supervised) wins. Where the first setting is a published
one, `--round defaults` lets the defaults compete as well; `--round lengths` trains the first setting for
fewer steps, to choose the default number by. SP-GCL has further rounds.
`candidates`, `common` and `closer` are settings meant for any graph, trained on all of them to choose the
defaults by. The others are for graphs whose winner falls short of the paper on its test nodes: that decided
who gets more trials, the validation scores alone decide between them. Test scores are neither written nor
looked at. What the results file holds already is not trained again. On CUDA several workers share the device
far better with NVIDIA's multi-process service (`nvidia-cuda-mps-control -d`).

    python benchmarks/search.py --workers 12 cora citeseer
    python benchmarks/search.py --workers 12 --method grace cora citeseer
    python benchmarks/search.py --workers 12 --round common cora citeseer
    python benchmarks/search.py --round large cora citeseer
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import spgcl
from spgcl.estimator import choose_device
from spgcl.evaluation import probe, score_predictions
from spgcl.methods import find

sys.path.insert(0, str(Path(__file__).parent))
from fitted import embeddings_of
from record import append, machine, read_lines
from spaces import FOR_ALL_METHODS, ROUNDS, SPACES, drawn, spgcl_settings

RESULTS = Path(__file__).parents[1] / "results" / "search.jsonl"
Trial = tuple[str, str, int]


@cache
def dataset_of(name: str) -> spgcl.Dataset:
    return spgcl.load(name)


def validate(method_name: str, name: str, trial: int, seed: int, settings: dict[str, Any]) -> dict[str, Any]:
    """Train once and return the mean validation score over the splits."""
    device = choose_device("auto")
    dataset = dataset_of(name)
    record = {"dataset": name, "method": method_name, "trial": trial, "seed": seed, "settings": settings}
    try:
        embeddings = embeddings_of(dataset, method_name, settings, seed, device)
        task = (embeddings, dataset.labels, dataset.splits)
        if find(method_name).supervised:
            scores = score_predictions(*task, metric=dataset.metric)
        else:
            scores = probe(*task, metric=dataset.metric, device=str(device))
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
    parser.add_argument("--method", action="append", choices=list(SPACES), help="repeat for several")
    parser.add_argument(
        "--round",
        default="draws",
        choices=list(ROUNDS),
        help=f"all but {', '.join(FOR_ALL_METHODS)}: SP-GCL only",
    )
    parser.add_argument("--trials", type=int, nargs="+", help="only these of the round")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    methods = arguments.method or ["spgcl"]
    if arguments.round not in FOR_ALL_METHODS and methods != ["spgcl"]:
        parser.error(f"the round {arguments.round} is for spgcl alone")
    chosen = ROUNDS[arguments.round]
    trials = arguments.trials or range(chosen.first, chosen.first + chosen.trials)
    scores: dict[Trial, dict[int, float]] = defaultdict(dict)
    for record in read_lines(arguments.results):
        keep(scores, record)
    with ProcessPoolExecutor(arguments.workers, mp_context=get_context("spawn")) as pool:

        def run(jobs: Iterable[tuple[Trial, int]]) -> None:
            pending = [
                pool.submit(validate, *trial, seed, settings_of(trial))
                for trial, seed in jobs
                if seed not in scores[trial]
            ]
            for future in as_completed(pending):
                record = future.result()
                append(arguments.results, record)
                keep(scores, record)
                print(record["method"], record["dataset"], record["trial"], record["validation"], flush=True)

        groups = [
            [(method, name, trial) for trial in trials] for method in methods for name in arguments.datasets
        ]
        run((trial, 0) for group in groups for trial in group)
        finalists = [
            trial for group in groups for trial in chosen.best({trial: scores[trial][0] for trial in group})
        ]
        run((trial, seed) for trial in finalists for seed in range(1, chosen.more_seeds + 1))


def settings_of(trial: Trial) -> dict[str, Any]:
    """Settings of a method's trial on a graph."""
    method, name, number = trial
    return spgcl_settings(name, number) if method == "spgcl" else drawn(method, name, number)


def keep(scores: dict[Trial, dict[int, float]], record: dict[str, Any]) -> None:
    """Note a score; a setting that failed counts as nothing."""
    trial = (record["method"], record["dataset"], record["trial"])
    scores[trial][record["seed"]] = record["validation"] or 0.0


if __name__ == "__main__":
    main()
