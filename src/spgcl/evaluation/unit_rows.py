"""Rows divided by their length.

`torch.linalg.vector_norm` does the same; products and sums are on a CUDA device already when an evaluation
gets here, and to load one more family of kernels takes longer than to use them.
"""

import torch
from torch import Tensor

_BLOCK_ENTRIES = 2**22


def squared_lengths(rows: Tensor) -> Tensor:
    """Squared L2 norms of the rows, without a copy of them all."""
    blocks = torch.split(rows, max(1, _BLOCK_ENTRIES // rows.shape[1]))
    return torch.cat([(block * block).sum(dim=1) for block in blocks])


def unit_rows(rows: Tensor) -> Tensor:
    """Rows of length one; those whose square vanishes stay about zero."""
    smallest = torch.finfo(rows.dtype).tiny
    return rows / squared_lengths(rows).clamp(min=smallest).sqrt()[:, None]
