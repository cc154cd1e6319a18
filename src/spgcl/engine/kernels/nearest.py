"""What is nearest, on CUDA: the largest few entries of long rows, and the best of a few offers.

Torch's own go over long rows several times.
"""

from typing import Any

import torch
from torch import Tensor

from spgcl.engine.kernels.compiled import load_kernels, uses_tf32

NAMES = ("largest_columns", "best_places")
# As in the source: threads of a block.
THREADS = 256


def serve(vectors: Tensor) -> bool:
    """Whether what is nearest is found so: where factors are rounded anyway, and may be halves."""
    return uses_tf32(vectors) and bool(_kernels())


def _kernels() -> dict[str, Any]:
    return load_kernels("nearest.cu", NAMES)


def largest_columns(values: Tensor, count: int) -> Tensor:
    """Columns of the `count` largest entries of every row in descending order, of equal ones the first.

    Args:
        values: Rows of float32, each without gaps.
        count: How many; no more than there are columns.
    """
    height, width = values.shape
    columns = torch.empty(height, count, dtype=torch.int64, device=values.device)
    _launch("largest_columns", height, values, columns, width, values.stride(0), count)
    return columns


def best_places(values: Tensor, offsets: Tensor) -> Tensor:
    """In every row and group the place of the largest sum of an entry and its offset, shape (rows, groups).

    Args:
        values: One column an entry of a group, group after group, shape (rows, groups * size).
        offsets: Shape (groups, size).
    """
    groups, size = offsets.shape
    number = len(values) * groups
    best = torch.empty(len(values), groups, dtype=torch.int32, device=values.device)
    blocks = -(-number * 32 // THREADS)
    _launch("best_places", blocks, values.contiguous(), offsets.contiguous(), best, number, groups, size)
    return best


def _launch(name: str, blocks: int, *arguments: Tensor | int) -> None:
    _kernels()[name](grid=(blocks, 1, 1), block=(THREADS, 1, 1), args=list(arguments), shared_mem=0)
