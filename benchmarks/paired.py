"""Variants of a training under the same seeds, one line per training, appended to results/paired.jsonl.

With the preset `published`, `plain` runs every step with plain operations in float32; `fast` replays a
captured CUDA graph in TF32, as `spgcl fit` does on CUDA; `pool` also takes the statistics of batch norm from
the pool's rows. Without a preset, `defaults` are for small graphs, `sized` for 200,000 nodes, `narrow` for a
million. Trainings in the results file are not repeated.

    python benchmarks/paired.py --seeds 10 cora pubmed chameleon amazon-photo
    python benchmarks/paired.py --seeds 3 --variants defaults,sized,narrow cora chameleon
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean
from typing import Any

from record import RESULTS

import spgcl
from spgcl.engine.device import choose_device
from spgcl.engine.kernels import step as kernels
from spgcl.evaluation import probe
from spgcl.experiments.results import append, machine, read_lines
from spgcl.methods import resolved_settings
from spgcl.methods.spgcl import SPGCL
from spgcl.training.fitting import fit

VARIANTS = ("plain", "fast", "pool")
# By variant: the preset, and what is set.
SETTINGS: dict[str, tuple[str | None, dict[str, Any]]] = {
    **{variant: ("published", {}) for variant in VARIANTS},
    "pool": ("published", {"batch_norm_rows": "pool"}),
    "defaults": (None, {}),
    "sized": (None, SPGCL.sized_defaults(200_000, 2_000_000)),
    "narrow": (None, SPGCL.sized_defaults(1_000_000, 10_000_000)),
}
with_kernels = kernels.available


def score(name: str, variant: str, seed: int, device_name: str) -> dict[str, Any]:
    """Train once and score under the paper's probe."""
    device = choose_device(device_name)
    dataset = spgcl.load(name)
    preset, given = SETTINGS[variant]
    # Without kernels a method takes the plain path.
    kernels.available = (lambda: False) if variant == "plain" else with_kernels
    fitted = fit(
        "spgcl",
        dataset.graph,
        settings=resolved_settings("spgcl", preset, name, given),
        seed=seed,
        device=device,
        precision="float32" if variant == "plain" else "auto",
    )
    task = (fitted.embed(), dataset.labels, dataset.splits)
    scores = probe(*task, metric=dataset.metric, device=str(device))
    return {
        "dataset": name,
        "variant": variant,
        "seed": seed,
        "test": round(scores.mean, 3),
        "validation": round(fmean(split.validation for split in scores.splits), 3),
        "seconds": round(fitted.seconds["train"], 3),
        **machine(device),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("datasets", nargs="+")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--variants", default=",".join(VARIANTS), help=f"of {', '.join(SETTINGS)}")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--results", type=Path, default=RESULTS / "paired.jsonl")
    arguments = parser.parse_args()
    lines = read_lines(arguments.results)
    known = {(line["dataset"], line["variant"], line["seed"]) for line in lines}
    jobs = [
        (name, variant, seed)
        for name, seed, variant in product(
            arguments.datasets, range(arguments.seeds), arguments.variants.split(",")
        )
        if (name, variant, seed) not in known
    ]
    with ProcessPoolExecutor(arguments.workers, mp_context=get_context("spawn")) as pool:
        for future in [pool.submit(score, *job, arguments.device) for job in jobs]:
            record = future.result()
            append(arguments.results, record)
            print(*(record[key] for key in ("dataset", "variant", "seed", "test", "seconds")), flush=True)


if __name__ == "__main__":
    main()
