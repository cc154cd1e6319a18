"""Auto beside what it is to keep up with, on contextual block models that nobody chose it on.

One line per graph, appended to results/grid.jsonl; graphs that have a line are skipped. Scores of the others
are copied from a superseded line, where only auto has changed. The parameters of graph number N are drawn
with seed N. SP-GCL with its defaults is trained on graphs of at most --most-nodes nodes.

python benchmarks/grid.py 200
"""

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from record import RESULTS, command_line
from trainings import embeddings_of

from spgcl import Dataset
from spgcl.datasets import Splits
from spgcl.datasets.synthetic import contextual_block_model
from spgcl.evaluation import tuned_probe
from spgcl.experiments.measures import summary
from spgcl.experiments.results import append, machine, read_all_lines
from spgcl.methods import resolved_settings

# Values of each parameter, drawn with equal probability; large graphs, which take long, stand here once.
GRID: dict[str, tuple[float, ...]] = {
    "num_nodes": (150, 150, 500, 500, 1500, 1500, 5000, 20_000),
    "num_classes": (2, 5),
    "average_degree": (2, 4, 8, 20, 50),
    "homophily": (0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9, 1),
    "num_features": (8, 32, 128, 512),
    "signal": (0, 0.5, 1, 1.5, 2.5),
}
# What auto is compared with.
RIVALS: dict[str, tuple[str, dict[str, Any]]] = {
    "raw": ("raw", {}),
    "smoothed": ("smoothed", {}),
    "joined": ("smoothed", {"joined": True}),
    "spgcl": ("spgcl", {}),
}
SPLITS = 3


def drawn(number: int) -> dict[str, Any]:
    """Parameters of a graph."""
    generator = np.random.default_rng(number)
    values: dict[str, Any] = {name: generator.choice(choices) for name, choices in GRID.items()}
    whole = ("num_nodes", "num_classes", "num_features")
    values = {name: int(value) if name in whole else float(value) for name, value in values.items()}
    # A block holds no more edges than half of its pairs.
    most = 0.4 * values["num_nodes"] / values["num_classes"]
    return {**values, "average_degree": min(values["average_degree"], most), "seed": number}


def measure(number: int, most_nodes: int, copied: dict[str, Any]) -> dict[str, Any]:
    """Scores of all methods on a graph, but those that are copied."""
    parameters = drawn(number)
    dataset = contextual_block_model(**parameters)
    scores = {}
    for label, (method, given) in {"auto": ("auto", {}), **RIVALS}.items():
        if label in copied:
            scores[label] = copied[label]
        elif method != "spgcl" or dataset.graph.num_nodes <= most_nodes:
            scores[label] = score(dataset, method, given)
    chance = 100 * float(np.bincount(dataset.labels).max() / len(dataset.labels))
    return {"graph": number, "parameters": parameters, "chance": round(chance, 2), "scores": scores}


def score(dataset: Dataset, method: str, given: dict[str, Any]) -> dict[str, float]:
    """Validation and test score under the tuned probe, and seconds of the fit."""
    started = time.perf_counter()
    settings = resolved_settings(method, None, "", given)
    vectors = embeddings_of(dataset, method, settings, 0, torch.device("cpu"))
    seconds = round(time.perf_counter() - started, 2)
    parts = dataset.splits
    splits = Splits(parts.train[:SPLITS], parts.validation[:SPLITS], parts.test[:SPLITS], parts.source)
    found = tuned_probe(vectors, dataset.labels, splits)
    return {"validation": summary(found)["validation"], "test": round(found.mean, 3), "seconds": seconds}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("graphs", type=int, help="graphs 0 to GRAPHS - 1")
    parser.add_argument("--most-nodes", type=int, default=150)
    parser.add_argument("--results", type=Path, default=RESULTS / "grid.jsonl")
    arguments = parser.parse_args()
    lines = read_all_lines(arguments.results)
    known = {line["graph"] for line in lines if "superseded" not in line}
    before = {
        line["graph"]: {label: scores for label, scores in line["scores"].items() if label in RIVALS}
        for line in lines
        if "superseded" in line
    }
    # Small graphs without signal have notes of their own.
    warnings.simplefilter("ignore")
    for number in sorted(set(range(arguments.graphs)) - known):
        record = measure(number, arguments.most_nodes, before.get(number, {}))
        more = {**machine(torch.device("cpu")), "command": command_line("grid.py", arguments.results)}
        append(arguments.results, {**record, **more})
        print(number, {label: values["test"] for label, values in record["scores"].items()}, flush=True)


if __name__ == "__main__":
    main()
