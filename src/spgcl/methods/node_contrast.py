"""What GRACE, GCA and GraphCL share: the same node of two views attracts, all other nodes of both repel."""

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import normalize

from spgcl.methods.method import Method

# Side of the square tiles in which similarities are computed: what a processor's cache holds, and what keeps
# an accelerator busy. A few temporaries of a tile's size exist together.
TILE = {"cpu": 1024, "cuda": 8192}


def node_contrast(first: Tensor, second: Tensor, *, temperature: float, tile: int | None = None) -> Tensor:
    """The symmetric objective of GRACE, Eq. 1 and 2 of its paper, as a loss to minimise.

    A node's negatives are all other nodes of its own view and of the other one. Similarities exist one tile
    at a time, forward and backward, so that memory is linear in the number of nodes.

    Args:
        first: Projections in one view (u), shape (nodes, width).
        second: Projections of the same nodes in the other view (v).
        temperature: What cosine similarities are divided by (tau).
        tile: Rows and columns of a tile; by default what suits the device.
    """
    vectors = torch.cat([normalize(first, dim=1), normalize(second, dim=1)])
    side = tile or TILE.get(vectors.device.type, TILE["cuda"])
    loss: Tensor = _NodeContrast.apply(vectors, temperature, side)  # type: ignore[no-untyped-call]
    return loss


def projection_head(width: int, inner_width: int, activation: nn.Module) -> nn.Sequential:
    """The two-layer perceptron g between an encoder and the objective."""
    return nn.Sequential(nn.Linear(width, inner_width), activation, nn.Linear(inner_width, width))


def adam(method: Method) -> torch.optim.Optimizer:
    """Adam, as the three papers have it, in which weight decay is a gradient of the squared weights."""
    return torch.optim.Adam(
        method.parameters(), lr=method.learning_rate, weight_decay=method.weight_decay, fused=True
    )


class _NodeContrast(torch.autograd.Function):
    """Mean over the rows of [U; V] of -log softmax at the partner, the row's own entry left out.

    Joined this way both directions of the objective and both kinds of negatives are one symmetric matrix of
    similarities. Only tiles on and above its diagonal are computed: once for the normalisers of all rows,
    once for the gradient, which is linear in the incoming one and so is ready before it is asked for.
    """

    @staticmethod
    def forward(ctx: Any, vectors: Tensor, temperature: float, side: int) -> Tensor:
        scale = math.sqrt(temperature)
        scaled = vectors / scale
        partners = scaled.roll(len(vectors) // 2, 0)
        normalisers = _log_normalisers(scaled, side)
        loss = (normalisers - (scaled * partners).sum(1)).mean()
        if ctx.needs_input_grad[0]:
            gradient = _repulsion(scaled, normalisers, side).sub_(partners, alpha=2)
            ctx.save_for_backward(gradient.div_(scale * len(vectors)))
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (saved,) = ctx.saved_tensors
        return saved * gradient, None, None


def _log_normalisers(vectors: Tensor, side: int) -> Tensor:
    """Log of the summed exponentials of every row without its own entry."""
    logs = vectors.new_full((len(vectors),), -torch.inf)
    for rows, columns, similarities in _tiles(vectors, side):
        logs[rows] = torch.logaddexp(logs[rows], similarities.logsumexp(1))
        # Above the diagonal a tile stands for its mirror image, too.
        if rows != columns:
            logs[columns] = torch.logaddexp(logs[columns], similarities.logsumexp(0))
    return logs


def _repulsion(vectors: Tensor, normalisers: Tensor, side: int) -> Tensor:
    """(P + P^T) times the vectors, with P the softmax of every row."""
    result = torch.zeros_like(vectors)
    for rows, columns, similarities in _tiles(vectors, side):
        shares = (similarities - normalisers[rows, None]).exp_()
        shares += similarities.sub_(normalisers[columns]).exp_()
        result[rows].addmm_(shares, vectors[columns])
        if rows != columns:
            result[columns].addmm_(shares.T, vectors[rows])
    return result


def _tiles(vectors: Tensor, side: int) -> Iterator[tuple[slice, slice, Tensor]]:
    """Similarities on and above the diagonal, minus infinity on it, with the rows and columns they are of."""
    spans = [slice(start, start + side) for start in range(0, len(vectors), side)]
    for place, rows in enumerate(spans):
        for columns in spans[place:]:
            similarities = vectors[rows] @ vectors[columns].T
            if rows == columns:
                similarities.fill_diagonal_(-torch.inf)
            yield rows, columns, similarities
