"""Auto and methods without training with few labels per class, under the tuned probe.

One line per graph, method and number of labels, appended to results/few_labels.jsonl; a graph and method
that have lines are skipped. Ten random splits:
as many nodes per class for validation as for training, the others for the test.

python benchmarks/few_labels.py cora chameleon
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from record import RESULTS, command_line
from trainings import embeddings_of, graphs_parser

import spgcl
from spgcl.datasets import Splits
from spgcl.evaluation import tuned_probe
from spgcl.experiments.results import append, machine, read_lines
from spgcl.methods import resolved_settings

COUNTS = (5, 20, 100)
SPLITS = 10
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "auto": ("auto", {}),
    "auto, 512 columns": ("auto", {"hidden": 512}),
    "raw": ("raw", {}),
    "smoothed": ("smoothed", {}),
    "smoothed, joined": ("smoothed", {"joined": True}),
}


def few(labels: NDArray[np.int64], count: int) -> Splits | None:
    """Random splits with `count` labels per class; None if a class has too few nodes."""
    classes = range(int(labels.max()) + 1)
    if min(np.count_nonzero(labels == label) for label in classes) < 2 * count + 10:
        return None
    parts = np.zeros((3, SPLITS, len(labels)), dtype=bool)
    for split in range(SPLITS):
        generator = np.random.default_rng(split)
        for label in classes:
            nodes = generator.permutation(np.flatnonzero(labels == label))
            for part, chosen in enumerate(np.split(nodes, [count, 2 * count])):
                parts[part, split, chosen] = True
    train, validation, test = parts
    return Splits(train, validation, test, f"seeded, {count} per class")


def main() -> None:
    arguments = graphs_parser(__doc__, RESULTS / "few_labels.jsonl").parse_args()
    cpu = torch.device("cpu")
    more = {**machine(cpu), "command": command_line("few_labels.py", arguments.results)}
    known = {(line["dataset"], line["method"]) for line in read_lines(arguments.results)}
    for name in arguments.datasets:
        dataset = spgcl.load(name)
        for label, (method, given) in METHODS.items():
            if (name, label) in known:
                continue
            vectors = embeddings_of(dataset, method, resolved_settings(method, None, name, given), 0, cpu)
            for count in COUNTS:
                splits = few(dataset.labels, count)
                if splits is None:
                    continue
                found = tuned_probe(vectors, dataset.labels, splits, metric=dataset.metric)
                score = {"test": round(found.mean, 3), "std": round(found.std, 3)}
                record = {"dataset": name, "method": label, "labels_per_class": count, **score, **more}
                append(arguments.results, record)
                print(name, label, count, score, flush=True)


if __name__ == "__main__":
    main()
