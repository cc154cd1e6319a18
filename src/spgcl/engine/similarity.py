"""The few largest entries of long rows."""

import torch
from torch import Tensor

# Neighbouring entries that are first told apart by the largest of them alone.
GROUP = 64


def largest(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` largest entries of every row in descending order, and their columns.

    `topk` goes over a row many times. Here one pass finds the largest entry of every group of columns: what
    is wanted lies in the groups with the `count` largest of those, or in the few columns left over.
    """
    width = values.shape[1]
    groups = width // GROUP
    if groups < 2 * count:
        found = values.topk(count, dim=1)
        return found.values, found.indices
    grouped = values[:, : groups * GROUP].reshape(-1, groups, GROUP)
    chosen = grouped.amax(dim=2).topk(count, dim=1).indices
    columns = (chosen[:, :, None] * GROUP + torch.arange(GROUP, device=values.device)).flatten(1)
    left_over = torch.arange(groups * GROUP, width, device=values.device).expand(len(values), -1)
    columns = torch.cat([columns, left_over], dim=1)
    best = values.gather(1, columns).topk(count, dim=1)
    return best.values, columns.gather(1, best.indices)


# With its largest entry between these, a row's square and its products with others are numbers of float32.
SMALLEST, LARGEST = 1e-10, 1e15


def comparable_rows(rows: Tensor) -> Tensor:
    """The rows, those too long or too short to be squared divided by their largest absolute entry."""
    # On CPU the two take an eighth of the time of `aminmax`.
    largest = torch.maximum(rows.amax(dim=1), -rows.amin(dim=1))
    odd = (largest > 0) & ((largest < SMALLEST) | (largest > LARGEST))
    return rows / torch.where(odd, largest, 1.0)[:, None] if bool(odd.any()) else rows


_BLOCK_ENTRIES = 2**22


def squared_lengths(rows: Tensor) -> Tensor:
    """Squared L2 norms of the rows, without a copy of them all."""
    blocks = torch.split(rows, max(1, _BLOCK_ENTRIES // rows.shape[1]))
    return torch.cat([(block * block).sum(dim=1) for block in blocks])


def unit_rows(rows: Tensor) -> Tensor:
    """Rows of length one; those whose square vanishes stay about zero."""
    smallest = torch.finfo(rows.dtype).tiny
    return rows / squared_lengths(rows).clamp(min=smallest).sqrt()[:, None]
