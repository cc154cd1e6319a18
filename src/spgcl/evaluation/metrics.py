"""Accuracy and ROC-AUC of many classifiers at once, and agreement of clusters with classes."""

from collections.abc import Callable

import torch
from torch import Tensor


def accuracy(logits: Tensor, labels: Tensor) -> Tensor:
    """Fraction of rows whose largest logit is that of their label, shape (splits, starts).

    Args:
        logits: Shape (splits, rows, starts, classes).
        labels: Shape (splits, rows); -1 marks a row that is padding.
    """
    correct = (logits.argmax(dim=-1) == labels[:, :, None]).sum(dim=1)
    return correct.double() / (labels >= 0).sum(dim=1, keepdim=True)


def roc_auc(logits: Tensor, labels: Tensor) -> Tensor:
    """Probability that a row of class 1 ranks above one of class 0, ties count half, shape (splits, starts).

    Args:
        logits: Shape (splits, rows, starts, 2).
        labels: Shape (splits, rows), 0 or 1; -1 marks a row that is padding.
    """
    margins = (logits[..., 1] - logits[..., 0]).transpose(1, 2).contiguous()
    positive, negative = (labels == 1)[:, None], (labels == 0)[:, None]
    # All rows but the negatives are moved to the end, beyond any margin.
    ordered = margins.masked_fill(~negative, torch.inf).sort(dim=-1).values
    below = torch.searchsorted(ordered, margins)
    not_above = torch.searchsorted(ordered, margins, right=True)
    wins = ((below + not_above) * positive).sum(dim=-1).double() / 2
    return wins / (positive.sum(dim=-1) * negative.sum(dim=-1))


MEASURES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"accuracy": accuracy, "roc_auc": roc_auc}


def normalised_mutual_information(classes: Tensor, clusters: Tensor) -> float:
    """Mutual information of two labelings over the mean of their entropies; 1 if both are constant."""
    counts = _contingency(classes, clusters)
    first, second, both = (_entropy(part) for part in (counts.sum(dim=1), counts.sum(dim=0), counts))
    if first == second == 0:
        return 1.0
    return max(0.0, 2 * (first + second - both) / (first + second))


def adjusted_rand_index(classes: Tensor, clusters: Tensor) -> float:
    """Fraction of row pairs on which two labelings agree, rescaled: 0 for random labelings, at most 1."""
    counts = _contingency(classes, clusters)
    first, second, both = (_pairs(part) for part in (counts.sum(dim=1), counts.sum(dim=0), counts))
    if first == second == both:
        return 1.0
    expected = first * second / _pairs(counts.sum())
    return (both - expected) / ((first + second) / 2 - expected)


def _contingency(classes: Tensor, clusters: Tensor) -> Tensor:
    """How many rows have each class and cluster, shape (classes, clusters)."""
    width = int(clusters.max()) + 1
    shape = int(classes.max()) + 1, width
    return torch.bincount(classes * width + clusters, minlength=shape[0] * shape[1]).view(shape).double()


def _entropy(counts: Tensor) -> float:
    fractions = counts[counts > 0] / counts.sum()
    return -float((fractions * fractions.log()).sum())


def _pairs(counts: Tensor) -> float:
    return float((counts * (counts - 1)).sum() / 2)
