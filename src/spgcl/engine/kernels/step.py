"""The kernels of a training step on CUDA: compiled when first used, and launched.

They have fixed shapes and never wait for the host, so that a CUDA graph can capture a step.
"""

from typing import Any

import torch
from torch import Tensor

from spgcl.engine.kernels.compiled import load_kernels

NAMES = (
    "narrow_rows",
    "wide_rows",
    "narrow_pieces",
    "wide_pieces",
    "float16_pieces",
    "join_pieces",
    "largest_magnitude",
    "to_float16",
    "mark_columns",
    "list_marked",
    "assign_rows",
    "expand_hop",
    "count_bits",
    "draw_distinct",
    "moments",
    "finish_moments",
    "activate",
    "activate_sums",
    "finish_sums",
    "activate_gradient",
    "unit_rows",
    "unit_rows_gradient",
    "contrast",
)
# As in the source: columns of a narrow block, and rows of threads in a block.
NARROW, LANES = 128, 8
# Floats of shared memory that a block has without asking for more.
SHARED = 48 * 1024 // 4 - 128

Argument = Tensor | int | float


def available() -> bool:
    """Whether this PyTorch can compile kernels for the accelerator of this machine."""
    return torch.cuda.is_available() and torch.version.hip is None and bool(_kernels())


def launch(
    name: str, grid: tuple[int, int], block: tuple[int, int], *arguments: Argument, shared: int = 0
) -> None:
    """Run a kernel; `shared` is its dynamic shared memory in bytes."""
    _kernels()[name](grid=(*grid, 1), block=(*block, 1), args=list(arguments), shared_mem=shared)


def _kernels() -> dict[str, Any]:
    return load_kernels("step.cu", NAMES)
