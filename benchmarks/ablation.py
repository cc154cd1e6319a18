"""Auto with one part left out, or something added: validation and test scores under the tuned probe.

One line per graph and variant, appended to results/ablation.jsonl; what has a line is skipped.

python benchmarks/ablation.py cora chameleon
"""

from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from numpy.typing import NDArray
from record import RESULTS, command_line
from trainings import embeddings_of, graphs_parser

import spgcl
from spgcl import Dataset
from spgcl.datasets import Splits
from spgcl.evaluation import tuned_probe
from spgcl.experiments.measures import summary
from spgcl.experiments.results import append, machine, read_lines
from spgcl.methods.auto import Auto
from spgcl.methods.parts import halves, weights
from spgcl.methods.parts.channels import CHANNELS

SPLITS = 3
CPU = torch.device("cpu")
# How much the vectors of SP-GCL, an MLP on those of auto, count beside them.
LEARNED = 0.5
Weighing = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def without(*names: str) -> Weighing:
    """Weights without some channels."""

    def weigh(agreement: NDArray[np.float64]) -> NDArray[np.float64]:
        return weights.channel_weights(agreement) * [name not in names for name in CHANNELS]

    return weigh


def equal(_agreement: NDArray[np.float64]) -> NDArray[np.float64]:
    """All channels count alike but degrees, of which a user said nothing."""
    return np.array([float(name != "degrees") for name in CHANNELS])


WEIGHINGS: dict[str, Weighing] = {
    "auto": weights.channel_weights,
    "without own": without("own"),
    "without one and two hops": without("one hop", "two hops"),
    "without neighbours and theirs": without("neighbours", "their neighbours"),
    "without region": without("region"),
    "without degrees": without("degrees"),
    "equal weights": equal,
}


HALVED = ("agreements", "axis_reliabilities")
ALIKE, UNSCALED, LEARNING = "axes alike", "unscaled columns", "and SP-GCL"
VARIANTS = (*WEIGHINGS, ALIKE, UNSCALED, LEARNING)


def vectors_of(dataset: Dataset, variant: str) -> NDArray[np.float32]:
    """Vectors of auto, or of a variant."""
    if variant == ALIKE:
        with patch("spgcl.methods.auto.FLOOR", 1e4):
            return auto(dataset)
    if variant == UNSCALED:
        zeros, ones = np.zeros(dataset.graph.num_features), np.ones(dataset.graph.num_features)
        # Its halves are others, which are not remembered.
        with (
            patch("spgcl.methods.auto.column_scales", lambda _: (zeros, ones)),
            patch.multiple("spgcl.methods.auto", **{part: getattr(halves, part) for part in HALVED}),
        ):
            return auto(dataset)
    if variant == LEARNING:
        vectors = unit(auto(dataset))
        learning = Dataset(dataset.name, dataset.graph.with_features(vectors), dataset.labels, dataset.splits)
        settings = {"encoder": "mlp", "layers": 1, "hidden": 512, "normalise_features": False}
        learned = embeddings_of(learning, "spgcl", settings, 0, CPU)
        return np.hstack([vectors, LEARNED * unit(learned - learned.mean(axis=0))])
    with patch("spgcl.methods.auto.channel_weights", WEIGHINGS[variant]):
        return auto(dataset)


def auto(dataset: Dataset) -> NDArray[np.float32]:
    """Vectors of auto as it is now."""
    method = Auto(dataset.graph.num_features)
    return np.asarray(method.embed(method.prepare(dataset.graph, CPU)).numpy())


def unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows of length 1."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.maximum(lengths, np.finfo(np.float32).tiny), dtype=np.float32)


def remembered(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that keeps its first result: halves of a graph say the same to every variant."""
    kept: list[Any] = []

    def recall(*arguments: Any, **settings: Any) -> Any:
        if not kept:
            kept.append(function(*arguments, **settings))
        return kept[0]

    return recall


def measure(dataset: Dataset, variant: str) -> dict[str, Any]:
    """Scores of a variant on the first splits."""
    parts = dataset.splits
    splits = Splits(parts.train[:SPLITS], parts.validation[:SPLITS], parts.test[:SPLITS], parts.source)
    found = tuned_probe(vectors_of(dataset, variant), dataset.labels, splits, metric=dataset.metric)
    return {"validation": summary(found)["validation"], "test": round(found.mean, 3)}


def main() -> None:
    arguments = graphs_parser(__doc__, RESULTS / "ablation.jsonl").parse_args()
    known = {(line["dataset"], line["variant"]) for line in read_lines(arguments.results)}
    more = partial(machine, CPU)
    for name in arguments.datasets:
        dataset = spgcl.load(name)
        once: dict[str, Any] = {part: remembered(getattr(halves, part)) for part in HALVED}
        for variant in VARIANTS:
            if (name, variant) not in known:
                with patch.multiple("spgcl.methods.auto", **once):
                    scores = measure(dataset, variant)
                record = {"dataset": name, "variant": variant, **scores, **more()}
                command = command_line("ablation.py", arguments.results)
                append(arguments.results, {**record, "command": command})
                print(name, variant, scores, flush=True)


if __name__ == "__main__":
    main()
