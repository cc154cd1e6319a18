"""Supervised models scored by their own predictions."""

from typing import Any

import torch

from spgcl.datasets.dataset import Splits
from spgcl.errors import InputError
from spgcl.evaluation.checks import checked_task
from spgcl.evaluation.metrics import MEASURES, other_scores
from spgcl.evaluation.scores import Scores, SplitScore
from spgcl.evaluation.stacking import nodes_of


def score_predictions(class_scores: Any, labels: Any, splits: Splits, *, metric: str = "accuracy") -> Scores:
    """Score each model on the validation and test nodes of its own split.

    Args:
        class_scores: One row per node: the logits of all classes by the first model, then by the second, and
            so on, as supervised methods return them. Models of one split follow each other.
        labels: One class per node, 0 to classes - 1.
        splits: The splits that the models were trained with, in that order.
        metric: "accuracy", or "roc_auc" for two classes.
    """
    scores, targets, num_classes = checked_task(class_scores, labels, splits, metric, "cpu")
    starts = splits.restarts
    models = len(splits) * starts
    if scores.shape[1] != models * num_classes:
        raise InputError(
            f"{scores.shape[1]} class scores per node, but {models} models of {num_classes} classes "
            f"give {models * num_classes}; train a supervised method with these labels and splits"
        )
    logits = scores.view(-1, len(splits), starts, num_classes)
    records: list[SplitScore] = []
    for split in range(len(splits)):
        parts = [nodes_of(masks[split], "cpu") for masks in (splits.validation, splits.test)]
        found = [MEASURES[metric](logits[nodes, split][None], targets[nodes][None])[0] for nodes in parts]
        pairs = (100 * torch.stack(found, dim=1)).tolist()
        others = other_scores(logits[parts[1], split][None], targets[parts[1]][None], metric)
        records += [
            SplitScore(split, start, validation, test, others=other)
            for start, ((validation, test), other) in enumerate(zip(pairs, others, strict=True))
        ]
    return Scores.of(records, metric=metric, protocol="predictions", starts_of="training starts")
