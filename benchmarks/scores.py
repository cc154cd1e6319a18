"""Fit and score methods on data sets, one line per training, appended to results/scores.jsonl.

Supervised methods are scored by their own predictions, all others under both probes.

python benchmarks/scores.py --preset published --seeds 3 cora chameleon
python benchmarks/scores.py --seeds 3 cora                      # the defaults
python benchmarks/scores.py --method grace --method dgi --preset own cora chameleon
python benchmarks/scores.py --preset validated --seeds 1 grace:squirrel dgi:coauthor-cs
"""

import gc
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from record import RESULTS, append, command_line, machine, read_lines
from search_tables import best_draw
from spaces import DRAWN, own_preset
from timing.memory import peak_mib, reset_peak
from trainings import argument_parser, asked_pairs, embeddings_of, scored, validation_of

import spgcl
from spgcl.cli.options import given_settings
from spgcl.datasets import random_splits
from spgcl.engine.device import choose_device
from spgcl.evaluation import Scores, probe, tuned_probe
from spgcl.methods import resolved_settings


def score(
    method: str,
    name: str,
    preset: str | None,
    seed: int,
    device_name: str,
    given: dict[str, str],
    *,
    tenths: bool = False,
) -> dict[str, Any]:
    """Train once and score."""
    device = choose_device(device_name)
    dataset = spgcl.load(name)
    if tenths:
        dataset = replace(dataset, splits=random_splits(dataset.labels, seed=0))
    settings = settings_of(method, preset, name, given)
    gc.collect()
    taken = reset_peak(device)
    started = time.perf_counter()
    embeddings = embeddings_of(dataset, method, settings, seed, device)
    trained = time.perf_counter()
    # On the CPU, the peak includes what earlier trainings of the process left behind.
    memory = round(peak_mib(device) - taken, 1) if device.type == "cuda" else None
    results = scored(embeddings, dataset, method, (probe, tuned_probe), device)
    return {
        "dataset": name,
        "method": method,
        "preset": preset,
        "given": given,
        "seed": seed,
        **({"splits": dataset.splits.source} if tenths else {}),
        "metric": dataset.metric,
        "scores": {result.protocol: summary(result) for result in results},
        "seconds": {"fit": round(trained - started, 2), "eval": round(time.perf_counter() - trained, 2)},
        "peak_mib": memory,
        **machine(device),
    }


def settings_of(method: str, preset: str | None, name: str, given: dict[str, str]) -> dict[str, Any]:
    """All settings of a training; for the best draw, those that the search drew."""
    if preset != DRAWN:
        return resolved_settings(method, preset, name, given)
    records = read_lines(RESULTS / "search.jsonl")
    best = best_draw(records, method, name)
    if best is None:
        raise ValueError(f"the search of {method} on {name} is not finished")
    drawn = next(
        record["settings"]
        for record in records
        if (record["method"], record["dataset"], record["trial"]) == (method, name, best)
    )
    return resolved_settings(method, None, name, {**drawn, **given})


def summary(result: Scores) -> dict[str, Any]:
    """What a line keeps of an evaluation."""
    return {
        "test": round(result.mean, 3),
        "std": round(result.std, 3),
        "std_over": result.std_over,
        "validation": validation_of(result),
    }


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument(
        "--preset",
        action="append",
        help="repeat for several; 'defaults' for none, 'own' for published if it has the graph, else none"
        ", 'drawn' for the best of the draws that every method has",
    )
    parser.add_argument("--seeds", type=int, default=3, help="trainings of each")
    parser.add_argument("--first-seed", type=int, default=0, help="to continue earlier trainings")
    parser.add_argument("--set", action="append", metavar="NAME=VALUE")
    parser.add_argument(
        "--tenths",
        action="store_true",
        help="ten random splits with a tenth of the nodes labelled instead of the graph's own"
        "; such lines go to results/tenths.jsonl",
    )
    parser.add_argument("--device", default="auto")
    parser.add_argument(
        "--workers", type=int, default=1, help="trainings at once; above 1, times mean little"
    )
    parser.add_argument("--results", type=Path)
    arguments = parser.parse_args()
    results = arguments.results or RESULTS / ("tenths.jsonl" if arguments.tenths else "scores.jsonl")
    given = given_settings(arguments.set)
    jobs = [
        (method, name, preset_of(preset, method, name), seed, arguments.device, given)
        for preset in arguments.preset or ["defaults"]
        for method, name in asked_pairs(arguments.datasets, arguments.method)
        for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    ]
    more = {"workers": arguments.workers, "command": command_line("scores.py", results)}
    with ProcessPoolExecutor(arguments.workers, mp_context=get_context("spawn")) as pool:
        running = {pool.submit(score, *job, tenths=arguments.tenths): job for job in jobs}
        failed = False
        for future in as_completed(running):
            try:
                record = {**future.result(), **more}
            except (ValueError, RuntimeError) as error:
                failed = True
                message = str(error).splitlines()[0]
                print(*running[future][:4], "failed:", message, file=sys.stderr, flush=True)
                continue
            append(results, record)
            tests = {protocol: values["test"] for protocol, values in record["scores"].items()}
            print(*running[future][:4], tests, record["seconds"], flush=True)
    sys.exit(failed)


def preset_of(asked: str, method: str, dataset: str) -> str | None:
    """The preset that an option stands for."""
    if asked == "own":
        return own_preset(method, dataset)
    return None if asked == "defaults" else asked


if __name__ == "__main__":
    main()
