"""What rules of evaluation that read test scores, or test on training nodes, add to a score."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spgcl.datasets.dataset import Dataset
from spgcl.evaluation import tuned_probe
from spgcl.evaluation.checks import checked_task
from spgcl.evaluation.linear_probe import EPOCHS, LEARNING_RATE, initial_weights
from spgcl.evaluation.metrics import MEASURES
from spgcl.evaluation.stacking import logits_of, stacks
from spgcl.evaluation.tuned import fit_regressions


class Curves(NamedTuple):
    """Validation and test scores, fractions, each of shape (splits or restarts, epochs)."""

    validation: NDArray[np.float64]
    test: NDArray[np.float64]


def by_rule(curves: Curves) -> dict[str, float]:
    """The mean test score in percent by the rule that chooses the epoch, for each split by itself.

    `last` and `validation` (the first best epoch) read no test scores. `ties` takes the best test score where
    validation is best, `rising` where it is at its best so far, `test` of all epochs. `one_epoch` is the best
    mean over splits at one epoch.
    """
    validation, test = curves
    best = validation.max(axis=1, keepdims=True)
    best_so_far = np.maximum.accumulate(validation, axis=1)
    chosen = {
        "last": test[:, -1],
        "validation": test[np.arange(len(test)), validation.argmax(axis=1)],
        "ties": np.where(validation == best, test, -np.inf).max(axis=1),
        "rising": np.where(validation == best_so_far, test, -np.inf).max(axis=1),
        "test": test.max(axis=1),
        "one_epoch": test.mean(axis=0).max(),
    }
    return {rule: round(100 * float(np.mean(scores)), 3) for rule, scores in chosen.items()}


def tuned_point(vectors: Any, dataset: Dataset, device: torch.device) -> Curves:
    """Scores of one epoch of a training under the tuned probe."""
    task = (vectors, dataset.labels, dataset.splits)
    splits = tuned_probe(*task, metric=dataset.metric, device=str(device)).splits
    parts = ([getattr(split, part) / 100 for split in splits] for part in Curves._fields)
    return Curves(*(np.array(part)[:, None] for part in parts))


def joined(points: Sequence[Curves]) -> Curves:
    """One epoch after the other."""
    return Curves(*(np.concatenate(part, axis=1) for part in zip(*points, strict=True)))


def probe_curves(vectors: Any, dataset: Dataset, *, epochs: int = EPOCHS) -> Curves:
    """Scores after every epoch of the paper's probe, a row per split and restart."""
    splits = dataset.splits
    rows, labels, num_classes = checked_task(vectors, dataset.labels, splits, dataset.metric, "cpu")
    initial = initial_weights(len(splits), splits.restarts, num_classes, rows.shape[1], seed=0)
    curves = np.empty((2, len(splits), splits.restarts, epochs))
    for split in range(len(splits)):
        nodes = [torch.from_numpy(getattr(splits, part)[split]) for part in ("train", *Curves._fields)]
        (inputs, targets), *judged = [(rows[part], labels[part]) for part in nodes]
        layers = [part[split].clone().requires_grad_() for part in initial]
        optimiser = torch.optim.Adam(layers, LEARNING_RATE)
        for epoch in range(epochs):
            optimiser.zero_grad()
            by_class = _logits(inputs, layers).transpose(1, 2)
            losses = torch.nn.functional.cross_entropy(
                by_class, targets[:, None].expand(-1, splits.restarts), reduction="none"
            )
            torch.autograd.backward(losses.mean(dim=0).sum())
            optimiser.step()
            with torch.no_grad():
                for curve, (seen, classes) in zip(curves, judged, strict=True):
                    scores = MEASURES[dataset.metric](_logits(seen, layers)[None], classes[None])
                    curve[split, :, epoch] = scores[0]
    return Curves(*curves.reshape(2, -1, epochs))


def _logits(rows: Tensor, layers: Sequence[Tensor]) -> Tensor:
    """Logits (rows, restarts, classes) by weights (restarts, classes, width) and biases."""
    weights, biases = layers
    return (rows @ weights.flatten(0, 1).T).view(len(rows), *biases.shape) + biases


def pooled_masks(vectors: Any, dataset: Dataset) -> dict[str, float]:
    """Accuracy of the tuned probe, and what it becomes if the test masks of all splits are one test set.

    A node counts as often as it is in a mask. `trained` is the fraction of that set, in percent, which the
    classifier of a split was trained on.
    """
    splits = dataset.splits
    scores = tuned_probe(vectors, dataset.labels, splits)
    rows, labels, num_classes = checked_task(vectors, dataset.labels, splits, "accuracy", "cpu")
    rows, nodes = torch.nn.functional.normalize(rows), torch.arange(len(rows))
    times = splits.test.sum(axis=0)
    pooled = []
    for index, chosen in enumerate(scores.splits):
        own = {part: getattr(splits, part)[[index]] for part in ("train", "validation", "test")}
        (stack,) = stacks(rows, labels, replace(splits, **own), num_classes)
        strengths = [chosen.strength or 0.0]
        weights = fit_regressions(stack, num_classes, strengths, rows.shape[1])[0]
        logits = logits_of(rows, nodes, weights[..., : rows.shape[1]], weights[..., rows.shape[1]])
        correct = (logits[0, :, 0].argmax(dim=1) == labels).numpy()
        pooled.append((correct @ times) / times.sum())
    trained = fmean((train @ times) / times.sum() for train in splits.train)
    return {
        "test": round(scores.mean, 3),
        "pooled": round(100 * fmean(pooled), 3),
        "trained": round(100 * trained, 1),
    }
