"""Random search of settings on validation scores, one line per training, appended to results/search.jsonl.

Every method gets the same budget on every graph: the published setting and draws from its space (spaces.py)
are trained once, then the best few with more seeds; the best mean validation score under the paper's probe
(of the model's own predictions, for a supervised method) wins. If the first setting is a published one,
`--trials 50` adds the defaults; 100 to 121 are further candidates for the defaults of some methods, trained
once. Test scores are neither written nor read. Trials in the results file are not trained again, nor are the
published setting and the defaults if results/scores.jsonl has them: their validation scores are copied from
there. On CUDA several workers share the device far better with NVIDIA's multi-process service
(`nvidia-cuda-mps-control -d`).

    python benchmarks/search.py --workers 12 cora citeseer
    python benchmarks/search.py --workers 12 --method grace --method gca cora citeseer
    python benchmarks/search.py --workers 12 grace:cora gca:citeseer
    python benchmarks/search.py --trials 50 grace:cora
"""

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from record import RESULTS
from spaces import CANDIDATES, DEFAULTS, MORE_SEEDS, SPACES, TRIALS, finalists, own_preset, settings_of
from trainings import argument_parser, asked_pairs, embeddings_of

import spgcl
from spgcl.engine.device import choose_device
from spgcl.experiments.measures import scored, summary
from spgcl.experiments.results import append, machine, read_lines
from spgcl.methods import resolved_settings

Trial = tuple[str, str, int]
Job = tuple[Trial, int]
Scores = dict[Trial, dict[int, float]]
# Workers share a device: a training that ran out of memory is repeated.
ATTEMPTS = 3
load = cache(spgcl.load)


def validate(method: str, name: str, trial: int, seed: int, settings: dict[str, Any]) -> dict[str, Any]:
    """Train once and return the mean validation score over the splits, with all settings, drawn or not."""
    device = choose_device("auto")
    dataset = load(name)
    record = {
        "dataset": name,
        "method": method,
        "trial": trial,
        "seed": seed,
        "settings": resolved_settings(method, None, name, settings),
    }
    try:
        embeddings = embeddings_of(dataset, method, settings, seed, device)
        (scores,) = scored(embeddings, dataset, method, ("paper",), device)
    except ValueError as error:
        # What `fit` makes an error of its own is for `run` to repeat.
        if isinstance(error.__context__, torch.OutOfMemoryError):
            raise error.__context__ from None
        return {**record, "validation": None, "error": str(error)}
    finally:
        if device.type == "cuda":
            torch.cuda.empty_cache()
    return {**record, "validation": summary(scores)["validation"], **machine(device)}


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--trials", type=int, nargs="+", help="only these")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no training after this")
    parser.add_argument("--results", type=Path, default=RESULTS / "search.jsonl")
    arguments = parser.parse_args()
    pairs = asked_pairs(arguments.datasets, arguments.method)
    if unknown := {method for method, _ in pairs} - SPACES.keys():
        parser.error(f"no space for {', '.join(sorted(unknown))}; there is one for {', '.join(SPACES)}")
    trials = arguments.trials or range(TRIALS)
    known = [{*range(TRIALS), DEFAULTS, *CANDIDATES.get(method, ())} for method, _ in pairs]
    if outside := set(trials) - set.intersection(*known):
        parser.error(
            f"no trial {', '.join(map(str, sorted(outside)))}; see results/README.md for those there are"
        )
    scores: Scores = defaultdict(dict)
    for record in read_lines(arguments.results):
        keep(scores, record)
    groups = [[(method, name, trial) for trial in trials] for method, name in pairs]
    asked = {trial for group in groups for trial in group}
    for record in scored_before(read_lines(RESULTS / "scores.jsonl"), asked, scores):
        append(arguments.results, record)
        keep(scores, record)
    run(groups, scores, arguments.workers, arguments.results, arguments.seconds)


def run(
    groups: Sequence[Sequence[Trial]], scores: Scores, workers: int, results: Path, seconds: float
) -> None:
    """Train what is missing, group by group, and write each score when it is known."""
    last = time.monotonic() + seconds
    running: dict[Future[dict[str, Any]], Job] = {}
    failures: dict[Job, int] = defaultdict(int)

    def begin() -> None:
        taken = set(running.values())
        for trial, seed in missing(groups, scores):
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
    """Lines for published settings and defaults that already have a score."""
    for line in records:
        method, name, seed = line["method"], line["dataset"], line["seed"]
        for number, preset in ((0, own_preset(method, name)), (DEFAULTS, None)):
            trial = (method, name, number)
            other = line["preset"] != preset or line["given"]
            if other or trial not in asked or seed in scores[trial]:
                continue
            paper, *_ = line["scores"].values()
            yield {
                "dataset": name,
                "method": method,
                "trial": number,
                "seed": seed,
                "settings": settings_of(*trial),
                "validation": paper["validation"],
                "copied": "scores.jsonl",
                **{key: line[key] for key in ("device", "processor", "threads", "versions", "date")},
            }


def missing(groups: Sequence[Sequence[Trial]], scores: Scores) -> Iterator[Job]:
    """What is not trained yet: the first seed of every trial and, once a group has that, its finalists'."""
    for group in groups:
        firsts = [(trial, 0) for trial in group if 0 not in scores[trial]]
        yield from firsts
        if not firsts:
            for trial in finalists({trial: scores[trial][0] for trial in group if trial[2] <= DEFAULTS}):
                for seed in range(1, MORE_SEEDS + 1):
                    if seed not in scores[trial]:
                        yield trial, seed


def keep(scores: Scores, record: dict[str, Any]) -> None:
    """Note a score; a setting that failed counts as 0."""
    trial = (record["method"], record["dataset"], record["trial"])
    scores[trial][record["seed"]] = record["validation"] or 0.0


if __name__ == "__main__":
    main()
