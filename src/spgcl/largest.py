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
