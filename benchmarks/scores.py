"""Fit and score methods on data sets, one line per training, appended to results/scores.jsonl.

Supervised methods are scored by their own predictions, all others under both probes.

python benchmarks/scores.py --preset published --seeds 3 cora chameleon
python benchmarks/scores.py --seeds 3 cora                      # the plain defaults
python benchmarks/scores.py --method grace --method dgi --preset own cora chameleon
python benchmarks/scores.py --preset validated --seeds 1 grace:squirrel dgi:coauthor-cs
"""

import argparse
import gc
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from timing.memory import forget_peak, peak_mib

import spgcl
from spgcl.datasets import random_splits
from spgcl.engine.device import choose_device
from spgcl.evaluation import Scores, probe, score_predictions, tuned_probe
from spgcl.methods import find, resolved_settings

sys.path.insert(0, str(Path(__file__).parent))
from fitted import embeddings_of
from pairs import PAIRS_HELP, asked_pairs
from record import append, machine, read_lines
from search_tables import best_draw
from spaces import DRAWN, own_preset

RESULTS = Path(__file__).parents[1] / "results" / "scores.jsonl"
SEARCH = RESULTS.with_name("search.jsonl")
TENTHS = RESULTS.with_name("tenths.jsonl")


def score(
    name: str,
    method_name: str,
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
    settings = settings_of(method_name, preset, name, given)
    gc.collect()
    taken = forget_peak(device)
    started = time.perf_counter()
    embeddings = embeddings_of(dataset, method_name, settings, seed, device)
    trained = time.perf_counter()
    # The host's peak has what earlier trainings left in it.
    memory = round(peak_mib(device) - taken, 1) if device.type == "cuda" else None
    task = (embeddings, dataset.labels, dataset.splits)
    if find(method_name).supervised:
        results = [score_predictions(*task, metric=dataset.metric)]
    else:
        results = [
            evaluate(*task, metric=dataset.metric, device=str(device)) for evaluate in (probe, tuned_probe)
        ]
    scores = {result.protocol: summed(result) for result in results}
    return {
        "dataset": name,
        "method": method_name,
        "preset": preset,
        "given": given,
        "seed": seed,
        **({"splits": dataset.splits.source} if tenths else {}),
        "metric": dataset.metric,
        "scores": scores,
        "seconds": {"fit": round(trained - started, 2), "eval": round(time.perf_counter() - trained, 2)},
        "peak_mib": memory,
        **machine(device),
    }


def settings_of(method: str, preset: str | None, name: str, given: dict[str, str]) -> dict[str, Any]:
    """All settings of a training; of the best draw, they are what the search drew."""
    if preset != DRAWN:
        return resolved_settings(method, preset, name, given)
    records = read_lines(SEARCH)
    best = best_draw(records, method, name)
    if best is None:
        raise ValueError(f"the search of {method} on {name} is not done")
    chosen = next(
        record["settings"]
        for record in records
        if (record["method"], record["dataset"], record["trial"]) == (method, name, best)
    )
    return resolved_settings(method, None, name, {**chosen, **given})


def summed(result: Scores) -> dict[str, Any]:
    """What a line keeps of an evaluation."""
    validation = sum(record.validation for record in result.splits) / len(result.splits)
    return {
        "test": round(result.mean, 3),
        "std": round(result.std, 3),
        "std_over": result.std_over,
        "validation": round(validation, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("datasets", nargs="+", metavar="GRAPH", help=PAIRS_HELP)
    parser.add_argument("--method", action="append", help="repeat for several (default: spgcl)")
    parser.add_argument(
        "--preset",
        action="append",
        help="repeat for several; 'defaults' for none, 'own' for published where the graph has it, else none"
        ", 'drawn' for the best that the search drew for every method",
    )
    parser.add_argument("--seeds", type=int, default=3, help="how many trainings of each")
    parser.add_argument("--first-seed", type=int, default=0, help="to go on from trainings made before")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument(
        "--tenths",
        action="store_true",
        help="ten random splits with a tenth of the nodes labelled instead of the graph's own"
        f"; such lines go to results/{TENTHS.name}",
    )
    parser.add_argument("--device", default="auto")
    parser.add_argument(
        "--workers", type=int, default=1, help="trainings at once; above 1, times mean little"
    )
    parser.add_argument("--results", type=Path)
    arguments = parser.parse_args()
    results = arguments.results or (TENTHS if arguments.tenths else RESULTS)
    given = dict(pair.split("=", 1) for pair in arguments.set)
    jobs = [
        (name, method, preset_of(preset, method, name), seed, arguments.device, given)
        for preset in arguments.preset or ["defaults"]
        for method, name in asked_pairs(arguments.datasets, arguments.method or ["spgcl"])
        for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    ]
    # The path of the results file does not matter to a result.
    words = [word for word in sys.argv[1:] if word not in ("--results", str(results))]
    command = " ".join(["python", "benchmarks/scores.py", *words])
    with ProcessPoolExecutor(arguments.workers, mp_context=get_context("spawn")) as pool:
        running = {pool.submit(score, *job, tenths=arguments.tenths): job for job in jobs}
        failed = 0
        for future in as_completed(running):
            try:
                record = {**future.result(), "workers": arguments.workers, "command": command}
            except (ValueError, RuntimeError) as error:
                failed += 1
                print(
                    *running[future][:4], "failed:", str(error).splitlines()[0], file=sys.stderr, flush=True
                )
                continue
            append(results, record)
            print(shown(record), flush=True)
    sys.exit(bool(failed))


def preset_of(asked: str, method: str, dataset: str) -> str | None:
    """The preset that an option stands for."""
    if asked == "own":
        return own_preset(method, dataset)
    return None if asked == "defaults" else asked


def shown(record: dict[str, Any]) -> str:
    """A record as a line of text."""
    scores = [
        f"{protocol} {values['test']:.2f} (validation {values['validation']:.2f})"
        for protocol, values in record["scores"].items()
    ]
    about = f"{record['method']:9s} {record['dataset']:18s}"
    which = f"{record['preset'] or 'defaults'} seed {record['seed']}"
    memory = [] if record["peak_mib"] is None else [f"{record['peak_mib']:.0f} MiB"]
    return "  ".join([about, which, *scores, str(record["seconds"]), *memory])


if __name__ == "__main__":
    main()
