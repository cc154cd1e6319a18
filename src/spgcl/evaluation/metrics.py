"""Accuracy and ROC-AUC of many classifiers at once."""

from collections.abc import Callable

import torch
from torch import Tensor


def accuracy(logits: Tensor, labels: Tensor) -> Tensor:
    """Share of rows whose largest logit is their label's, shape (splits, starts).

    Args:
        logits: Shape (splits, rows, starts, classes).
        labels: Shape (splits, rows); -1 marks a row that is padding.
    """
    correct = (logits.argmax(dim=-1) == labels[:, :, None]).sum(dim=1)
    return correct.double() / (labels >= 0).sum(dim=1, keepdim=True)


def roc_auc(logits: Tensor, labels: Tensor) -> Tensor:
    """Chance that a row of class 1 stands above one of class 0, ties counted half, shape (splits, starts).

    Args:
        logits: Shape (splits, rows, starts, 2).
        labels: Shape (splits, rows), 0 or 1; -1 marks a row that is padding.
    """
    margins = (logits[..., 1] - logits[..., 0]).transpose(1, 2).contiguous()
    positive, negative = (labels == 1)[:, None], (labels == 0)[:, None]
    # Everything but the negatives is moved to the end, where no margin reaches.
    ordered = margins.masked_fill(~negative, torch.inf).sort(dim=-1).values
    below = torch.searchsorted(ordered, margins)
    not_above = torch.searchsorted(ordered, margins, right=True)
    wins = ((below + not_above) * positive).sum(dim=-1).double() / 2
    return wins / (positive.sum(dim=-1) * negative.sum(dim=-1))


MEASURES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"accuracy": accuracy, "roc_auc": roc_auc}
