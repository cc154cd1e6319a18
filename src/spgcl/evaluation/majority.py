"""The score of giving every node the most frequent class of the training nodes."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from spgcl.datasets.dataset import Splits
from spgcl.evaluation.checks import checked_classes
from spgcl.evaluation.metrics import MEASURES
from spgcl.evaluation.scores import Scores, SplitScore


def majority_class(labels: Any, splits: Splits, *, metric: str = "accuracy") -> Scores:
    """Score one answer per split, the most frequent class of its training nodes: what vectors have to beat.

    Args:
        labels: One class per node, negative if unknown.
        splits: Training, validation and test nodes.
        metric: As for `probe`.
    """
    classes, num_classes = checked_classes(labels, splits.train.shape[1])
    records = []
    for split, train in enumerate(splits.train):
        counts = torch.from_numpy(np.bincount(classes[train], minlength=num_classes))
        validation, test = (
            _score(counts, torch.from_numpy(classes[part[split]]), metric)
            for part in (splits.validation, splits.test)
        )
        records.append(SplitScore(split, 0, validation, test))
    return Scores.of(records, metric=metric, protocol="majority class")


def _score(counts: Tensor, labels: Tensor, metric: str) -> float:
    """In percent, with the counts of the classes as the logits of every node."""
    logits = counts.double().expand(1, len(labels), 1, -1)
    return 100 * float(MEASURES[metric](logits, labels[None])[0, 0])
