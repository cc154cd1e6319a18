"""Functions of a tile of products in float16, on CUDA.

It takes half the bytes of float32 and is twice as fast as TF32, which has as many digits. Only methods over
all pairs compile these kernels.
"""

from typing import Any

import torch
from torch import Tensor

from spgcl.engine.kernels.compiled import load_kernels, uses_tf32

NAMES = ("exponential_sums", "exponential_shares", "logistic")
# As in the source: columns and rows per block, and the number that columns of a tile are a multiple of.
COLUMNS, ROWS, MULTIPLE = 2048, 64, 8
# As in the source: moves probabilities to the middle of the range of float16.
LOGISTIC_SCALE = 2.0**14


def serve(vectors: Tensor) -> bool:
    """Whether products of vectors may be in float16: if they would be computed in TF32 otherwise."""
    return uses_tf32(vectors) and bool(_kernels())


def _kernels() -> dict[str, Any]:
    return load_kernels("tiles.cu", NAMES)


def exponential_sums(tile: Tensor, columns: int, *, diagonal: bool) -> tuple[Tensor, Tensor]:
    """Summed exponentials of every row and of every column.

    Args:
        tile: Products in float16, its columns a multiple of eight.
        columns: How many of them count.
        diagonal: Leave out the diagonal of the tile.
    """
    height, stride = tile.shape
    of_rows = torch.empty(-(-stride // COLUMNS), height, device=tile.device)
    of_columns = torch.empty(-(-height // ROWS), columns, device=tile.device)
    _launch("exponential_sums", tile, of_rows, of_columns, height, columns, stride, int(diagonal))
    return of_rows.sum(0), of_columns.sum(0)


def exponential_shares_(tile: Tensor, of_rows: Tensor, of_columns: Tensor, *, diagonal: bool) -> None:
    """Turn products into their exponentials, times the sum of a weight of the row and one of the column.

    Args:
        tile: Products in float16, its columns a multiple of eight; those without a weight become 0.
        of_rows: Weight of every row.
        of_columns: Weights of columns.
        diagonal: Set the diagonal of the tile to 0.
    """
    height, stride = tile.shape
    given = (height, len(of_columns), stride, int(diagonal))
    _launch("exponential_shares", tile, of_rows, of_columns, *given)


def logistic_(tile: Tensor, columns: int, unit: Tensor) -> Tensor:
    """Turn products into their logistic function times `LOGISTIC_SCALE`; returns the sum of softplus.

    Args:
        tile: Products in float16, its columns a multiple of eight.
        columns: How many of them count; the others become 0.
        unit: The unit of the products, one number.
    """
    height, stride = tile.shape
    parts = torch.empty(-(-height // ROWS), -(-stride // COLUMNS), device=tile.device)
    _launch("logistic", tile, unit, parts, height, columns, stride)
    return parts.sum()


def _launch(name: str, tile: Tensor, *arguments: Tensor | int) -> None:
    height, stride = tile.shape
    grid, block = (-(-stride // COLUMNS), -(-height // ROWS), 1), (COLUMNS // MULTIPLE, 1, 1)
    _kernels()[name](grid=grid, block=block, args=[tile, *arguments], shared_mem=0)
