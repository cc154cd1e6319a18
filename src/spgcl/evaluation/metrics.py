"""Accuracy, ROC-AUC and scores by class of many classifiers at once; agreement of clusters with classes."""

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


def balanced_accuracy(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean over the classes of the labels of the fraction that is found, shape (splits, starts).

    Args:
        logits: Shape (splits, rows, starts, classes).
        labels: Shape (splits, rows); -1 marks a row that is padding.
    """
    counts = _counts_by_class(logits, labels)
    own = counts.sum(dim=3)
    found = counts.diagonal(dim1=2, dim2=3) / own.clamp(min=1)
    return found.sum(dim=2) / (own > 0).sum(dim=2)


def macro_f1(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean of the F1 scores of all classes that are labels or predictions, shape (splits, starts).

    Args:
        logits: Shape (splits, rows, starts, classes).
        labels: Shape (splits, rows); -1 marks a row that is padding.
    """
    counts = _counts_by_class(logits, labels)
    either = counts.sum(dim=3) + counts.sum(dim=2)
    scores = 2 * counts.diagonal(dim1=2, dim2=3) / either.clamp(min=1)
    return scores.sum(dim=2) / (either > 0).sum(dim=2)


def _counts_by_class(logits: Tensor, labels: Tensor) -> Tensor:
    """How many rows of each class are predicted as each, shape (splits, starts, classes, classes)."""
    classes = logits.shape[-1]
    predicted = logits.argmax(dim=-1).transpose(1, 2)
    pairs = labels.clamp(min=0)[:, None] * classes + predicted
    known = (labels >= 0)[:, None].expand_as(pairs).double()
    counts = known.new_zeros(*pairs.shape[:2], classes**2).scatter_add_(2, pairs, known)
    return counts.view(*pairs.shape[:2], classes, classes)


MEASURES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "accuracy": accuracy,
    "roc_auc": roc_auc,
    "balanced_accuracy": balanced_accuracy,
    "macro_f1": macro_f1,
}
# Reported beside any score, as classes may be of uneven size.
BY_CLASS = ("balanced_accuracy", "macro_f1")


def other_scores(logits: Tensor, labels: Tensor, metric: str) -> list[dict[str, float]]:
    """The measures by class other than `metric` in percent, one record per restart of a single split."""
    named = [name for name in BY_CLASS if name != metric]
    values = [(100 * MEASURES[name](logits, labels)[0]).tolist() for name in named]
    return [dict(zip(named, row, strict=True)) for row in zip(*values, strict=True)]


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
