"""Nearest neighbours on CUDA: the few largest entries of long rows, and the best entry of each group.

Torch's own functions read long rows several times.
"""

from typing import Any

import torch
from torch import Tensor

from spgcl.engine.kernels.compiled import load_kernels, uses_tf32

NAMES = ("largest_columns", "best_places")
# As in the source: threads of a block.
THREADS = 256


def serve(vectors: Tensor) -> bool:
    """Whether nearest neighbours may come from float16 products: if they would be in TF32 otherwise."""
    return uses_tf32(vectors) and bool(_kernels())


def _kernels() -> dict[str, Any]:
    return load_kernels("nearest.cu", NAMES)


def largest_columns(values: Tensor, count: int) -> Tensor:
    """Columns of the `count` largest entries of every row in descending order; ties by column.

    Args:
        values: Rows of float32, each contiguous.
        count: How many; no more than there are columns.
    """
    height, width = values.shape
    columns = torch.empty(height, count, dtype=torch.int64, device=values.device)
    _launch("largest_columns", height, values, columns, width, values.stride(0), count)
    return columns


def best_places(values: Tensor, offsets: Tensor) -> Tensor:
    """Position of the largest sum of an entry and its offset in each row and group, shape (rows, groups).

    Args:
        values: One column per entry of a group, group after group, shape (rows, groups * size).
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
