"""Random search of settings on validation scores, one line per training, appended to results/search.jsonl.

Every method gets the same budget on every graph: the published setting and draws from its space (spaces.py)
are trained once, then the best few with more seeds; the best mean validation score under the paper's probe
(of the model's own predictions, where the method is supervised) wins. Where the first setting is a published
one, `--round defaults` lets the defaults compete as well. Test scores are neither written nor read. Trials in
the results file are not trained again, nor are the published setting and the defaults where
results/scores.jsonl has them: their validation scores are copied from there. On CUDA several workers share
the device far better with NVIDIA's multi-process service (`nvidia-cuda-mps-control -d`).

    python benchmarks/search.py --workers 12 cora citeseer
    python benchmarks/search.py --workers 12 --method grace --method gca cora citeseer
    python benchmarks/search.py --workers 12 grace:cora gca:citeseer
    python benchmarks/search.py --round defaults grace:cora
"""

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

import spgcl
from spgcl.engine.device import choose_device
from spgcl.evaluation import probe, score_predictions
from spgcl.methods import find, resolved_settings

sys.path.insert(0, str(Path(__file__).parent))
from fitted import embeddings_of
from pairs import PAIRS_HELP, asked_pairs
from record import append, machine, read_lines
from spaces import DEFAULTS, ROUNDS, SPACES, Round, own_preset, settings_of

RESULTS = Path(__file__).parents[1] / "results" / "search.jsonl"
SCORED = RESULTS.with_name("scores.jsonl")
Trial = tuple[str, str, int]
Job = tuple[Trial, int]
Scores = dict[Trial, dict[int, float]]
# Several workers may share a device: a training that ran out of memory is tried again.
ATTEMPTS = 3


@cache
def dataset_of(name: str) -> spgcl.Dataset:
    return spgcl.load(name)


def validate(method_name: str, name: str, trial: int, seed: int, settings: dict[str, Any]) -> dict[str, Any]:
    """Train once and return the mean validation score over the splits, with all settings, drawn or not."""
    device = choose_device("auto")
    dataset = dataset_of(name)
    record = {
        "dataset": name,
        "method": method_name,
        "trial": trial,
        "seed": seed,
        "settings": resolved_settings(method_name, None, name, settings),
    }
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
    finally:
        if device.type == "cuda":
            torch.cuda.empty_cache()
    return {**record, "validation": round(score, 3), **machine(device)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("datasets", nargs="+", metavar="GRAPH", help=PAIRS_HELP)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--method", action="append", choices=list(SPACES), help="repeat for several")
    parser.add_argument("--round", default="draws", choices=list(ROUNDS))
    parser.add_argument("--trials", type=int, nargs="+", help="only these of the round")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no training after this")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    pairs = asked_pairs(arguments.datasets, arguments.method or ["spgcl"])
    if unknown := {method for method, _ in pairs} - SPACES.keys():
        parser.error(f"no space for {', '.join(sorted(unknown))}; there is one for {', '.join(SPACES)}")
    chosen = ROUNDS[arguments.round]
    round_trials = range(chosen.first, chosen.first + chosen.trials)
    if outside := set(arguments.trials or ()) - set(round_trials):
        parser.error(f"the round {arguments.round} has no trial {', '.join(map(str, sorted(outside)))}")
    scores: Scores = defaultdict(dict)
    for record in read_lines(arguments.results):
        keep(scores, record)
    trials = arguments.trials or round_trials
    groups = [[(method, name, trial) for trial in trials] for method, name in pairs]
    for record in scored_before(read_lines(SCORED), {trial for group in groups for trial in group}, scores):
        append(arguments.results, record)
        keep(scores, record)
    run(groups, chosen, scores, arguments.workers, arguments.results, arguments.seconds)


def run(
    groups: Sequence[Sequence[Trial]],
    chosen: Round,
    scores: Scores,
    workers: int,
    results: Path,
    seconds: float,
) -> None:
    """Train what is missing, group by group, and write each score as it comes."""
    last = time.monotonic() + seconds
    running: dict[Future[dict[str, Any]], Job] = {}
    failures: dict[Job, int] = defaultdict(int)

    def begin() -> None:
        taken = set(running.values())
        for trial, seed in missing(groups, chosen, scores):
            if len(running) == workers or time.monotonic() > last:
                return
            if (trial, seed) not in taken:
                running[pool.submit(validate, *trial, seed, settings_of(*trial))] = trial, seed

    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        begin()
        while running:
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                job = running.pop(future)
                try:
                    record = future.result()
                except torch.OutOfMemoryError:
                    failures[job] += 1
                    if failures[job] == ATTEMPTS:
                        raise
                    continue
                append(results, record)
                keep(scores, record)
                print(record["method"], record["dataset"], record["trial"], record["validation"], flush=True)
            begin()


def scored_before(
    records: Iterable[dict[str, Any]], asked: set[Trial], scores: Scores
) -> Iterator[dict[str, Any]]:
    """Lines for published settings and defaults that were trained to be scored already."""
    for scored in records:
        method, name, seed = scored["method"], scored["dataset"], scored["seed"]
        for number, preset in ((0, own_preset(method, name)), (DEFAULTS, None)):
            trial = (method, name, number)
            other = scored["preset"] != preset or scored["given"]
            if other or trial not in asked or seed in scores[trial]:
                continue
            paper, *_ = scored["scores"].values()
            taken_with = {key: scored[key] for key in ("device", "processor", "threads", "versions", "date")}
            yield {
                "dataset": name,
                "method": method,
                "trial": number,
                "seed": seed,
                "settings": settings_of(*trial),
                "validation": paper["validation"],
                "copied": SCORED.name,
                **taken_with,
            }


def missing(groups: Sequence[Sequence[Trial]], chosen: Round, scores: Scores) -> Iterator[Job]:
    """What is not trained yet: the first seed of every trial and, once a group has that, its finalists'."""
    for group in groups:
        firsts = [(trial, 0) for trial in group if 0 not in scores[trial]]
        yield from firsts
        if not firsts:
            for trial in chosen.best({trial: scores[trial][0] for trial in group}):
                for seed in range(1, chosen.more_seeds + 1):
                    if seed not in scores[trial]:
                        yield trial, seed


def keep(scores: Scores, record: dict[str, Any]) -> None:
    """Note a score; a setting that failed counts as nothing."""
    trial = (record["method"], record["dataset"], record["trial"])
    scores[trial][record["seed"]] = record["validation"] or 0.0


if __name__ == "__main__":
    main()
