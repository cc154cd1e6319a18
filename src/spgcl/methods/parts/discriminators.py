"""Scores of true pairs against false ones, which DGI, GMI and MVGRL share."""

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus


class Bilinear(nn.Module):
    """Scores x^T W y + b of pairs, the discriminator of DGI, GMI and MVGRL."""

    def __init__(self, width: int, other_width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width, other_width))
        self.bias = nn.Parameter(torch.zeros(1))
        # As in the code of the three papers: with a leading dimension of one, Glorot's rule counts the whole
        # matrix as inputs, which makes the range far smaller, so that scores start close to zero.
        nn.init.xavier_uniform_(self.weight.data[None])

    def against(self, rows: Tensor, vector: Tensor) -> Tensor:
        """Scores of all rows with one vector, shape (rows,)."""
        return rows @ (self.weight @ vector) + self.bias


def summarise(rows: Tensor) -> Tensor:
    """The readout R: the logistic function of the mean row."""
    return rows.mean(dim=0).sigmoid()


def noise_contrastive(positive: Tensor, negative: Tensor) -> Tensor:
    """Binary cross-entropy between scores of true pairs and of others, Eq. 1 of the DGI paper, negated.

    Args:
        positive: Scores, before the logistic function, of pairs that belong together, shape (N,).
        negative: Scores of pairs that do not, shape (M,).
    """
    count = positive.numel() + negative.numel()
    return (softplus(-positive).sum() + softplus(negative).sum()) / count
