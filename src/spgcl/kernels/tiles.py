"""Exponentials of a tile of products in half precision, on CUDA.

Half the bytes of float32 and twice the rate of its rounded factors (TF32), which keep as many digits. In a
file of its own, because a training of SP-GCL needs none of it.
"""

from typing import Any

import torch
from torch import Tensor

from spgcl.kernels.compiled import load_kernels

NAMES = ("exponential_sums", "exponential_shares")
# As in the source: columns and rows that a block looks at, and what the rows of a tile are a multiple of.
COLUMNS, ROWS, MULTIPLE = 2048, 64, 8


def serve(vectors: Tensor) -> bool:
    """Whether products of vectors may be had so: where factors are rounded to ten bits of fraction anyway."""
    return (
        vectors.is_cuda
        and vectors.dtype == torch.float32
        and torch.get_float32_matmul_precision() != "highest"
        and bool(_kernels())
    )


def _kernels() -> dict[str, Any]:
    return load_kernels("tiles.cu", NAMES)


def exponential_sums(tile: Tensor, columns: int, *, diagonal: bool) -> tuple[Tensor, Tensor]:
    """Summed exponentials of every row and of every column.

    Args:
        tile: Products in half precision, its columns a multiple of eight.
        columns: How many of them count.
        diagonal: Leave the diagonal of the tile out.
    """
    height, stride = tile.shape
    of_rows = torch.empty(-(-stride // COLUMNS), height, device=tile.device)
    of_columns = torch.empty(-(-height // ROWS), columns, device=tile.device)
    _launch("exponential_sums", tile, of_rows, of_columns, columns, diagonal)
    return of_rows.sum(0), of_columns.sum(0)


def exponential_shares_(tile: Tensor, of_rows: Tensor, of_columns: Tensor, *, diagonal: bool) -> None:
    """Turn products into their exponentials, times the sum of a weight of the row and one of the column.

    Args:
        tile: Products in half precision, its columns a multiple of eight; those without a weight become 0.
        of_rows: Weight of every row.
        of_columns: Weights of columns.
        diagonal: Leave the diagonal of the tile out: it becomes 0.
    """
    _launch("exponential_shares", tile, of_rows, of_columns, len(of_columns), diagonal)


def _launch(name: str, tile: Tensor, one: Tensor, other: Tensor, columns: int, diagonal: bool) -> None:
    height, stride = tile.shape
    grid, block = (-(-stride // COLUMNS), -(-height // ROWS), 1), (COLUMNS // MULTIPLE, 1, 1)
    arguments = [tile, one, other, height, columns, stride, int(diagonal)]
    _kernels()[name](grid=grid, block=block, args=arguments, shared_mem=0)
