"""Fit and score methods on data sets, one line a training, appended to results/scores.jsonl.

python benchmarks/scores.py --preset published --seeds 3 cora chameleon
python benchmarks/scores.py --seeds 3 cora                      # the plain defaults
"""

import argparse
import sys
import time
from pathlib import Path

import torch

import spgcl
from spgcl.estimator import choose_device
from spgcl.evaluation import probe, tuned_probe
from spgcl.methods import create, resolved_settings
from spgcl.runs import peak_memory_mib
from spgcl.training import train

sys.path.insert(0, str(Path(__file__).parent))
from record import append, machine

RESULTS = Path(__file__).parents[1] / "results" / "scores.jsonl"


def score(
    name: str, method_name: str, preset: str | None, seed: int, device: torch.device, given: dict[str, str]
) -> dict[str, object]:
    """Train once and score under both probes."""
    dataset = spgcl.load(name)
    settings = resolved_settings(method_name, preset, name, given)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    started = time.perf_counter()
    method = create(method_name, dataset.graph.num_features, seed=seed, settings=settings).to(device)
    prepared = method.prepare(dataset.graph, device)
    train(method, prepared, seed=seed)
    embeddings = method.embed(prepared).cpu().numpy()
    trained = time.perf_counter()
    memory = peak_memory_mib(device)
    scores = {}
    for protocol, evaluate in (("paper", probe), ("tuned", tuned_probe)):
        result = evaluate(
            embeddings, dataset.labels, dataset.splits, metric=dataset.metric, device=str(device)
        )
        validation = sum(record.validation for record in result.splits) / len(result.splits)
        scores[protocol] = {
            "test": round(result.mean, 3),
            "std": round(result.std, 3),
            "std_over": result.std_over,
            "validation": round(validation, 3),
        }
    return {
        "dataset": name,
        "method": method_name,
        "preset": preset,
        "given": given,
        "seed": seed,
        "metric": dataset.metric,
        "scores": scores,
        "seconds": {"fit": round(trained - started, 2), "eval": round(time.perf_counter() - trained, 2)},
        "peak_memory_mib": round(memory, 1),
        **machine(device),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("datasets", nargs="+")
    parser.add_argument("--method", default="spgcl")
    parser.add_argument("--preset")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--device", default="auto")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    device = choose_device(arguments.device)
    given = dict(pair.split("=", 1) for pair in arguments.set)
    for name in arguments.datasets:
        for seed in range(arguments.seeds):
            record = score(name, arguments.method, arguments.preset, seed, device, given)
            append(arguments.results, {**record, "command": " ".join(["python", *sys.argv])})
            shown = [f"{name:18s} {arguments.preset or 'defaults'} seed {seed}"]
            for protocol, values in record["scores"].items():
                shown.append(f"{protocol} {values['test']:.2f} (validation {values['validation']:.2f})")
            print(
                "  ".join([*shown, f"{record['seconds']}", f"{record['peak_memory_mib']:.0f} MiB"]),
                flush=True,
            )


if __name__ == "__main__":
    main()
