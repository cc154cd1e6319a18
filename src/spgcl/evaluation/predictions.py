"""Supervised models scored by what they predict themselves."""

from typing import TYPE_CHECKING, Any

import torch

from spgcl.errors import InputError
from spgcl.evaluation.checks import checked_task
from spgcl.evaluation.metrics import MEASURES
from spgcl.evaluation.scores import Scores, SplitScore
from spgcl.evaluation.stacking import nodes_of
from spgcl.methods.supervised import models_per_split

if TYPE_CHECKING:
    from spgcl.datasets.dataset import Splits


def score_predictions(
    class_scores: Any, labels: Any, splits: "Splits", *, metric: str = "accuracy"
) -> Scores:
    """Score each model on the nodes of the one split whose labels it was trained on.

    Args:
        class_scores: One row a node: the scores (logits) of all classes by the first model, then by the
            second, and so on, as supervised methods give them. Models of one split follow each other.
        labels: One class a node, 0 to classes - 1.
        splits: The splits that the models were trained with, in that order.
        metric: "accuracy", or "roc_auc" for two classes.
    """
    checked, values, num_classes = checked_task(class_scores, labels, splits, metric)
    starts = models_per_split(splits)
    models = len(splits) * starts
    if checked.shape[1] != models * num_classes:
        raise InputError(
            f"{checked.shape[1]} class scores a node, but {models} models of {num_classes} classes give "
            f"{models * num_classes}; give those of a supervised method trained with these labels and splits"
        )
    logits = torch.from_numpy(checked).view(-1, len(splits), starts, num_classes)
    targets = torch.from_numpy(values)
    records: list[SplitScore] = []
    for split in range(len(splits)):
        parts = [nodes_of(masks[split], "cpu") for masks in (splits.validation, splits.test)]
        scores = [MEASURES[metric](logits[nodes, split][None], targets[nodes][None])[0] for nodes in parts]
        records += [
            SplitScore(split, start, 100 * validation, 100 * test)
            for start, (validation, test) in enumerate(
                zip(scores[0].tolist(), scores[1].tolist(), strict=True)
            )
        ]
    return Scores.of(records, metric=metric, protocol="predictions", starts_of="training starts")
