"""Number formats of dense matrix products."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import torch

Precision = Literal["float32", "tf32"]


def precisions(device: torch.device) -> tuple[Precision, ...]:
    """The formats that a device multiplies float32 matrices in."""
    return ("float32", "tf32") if device.type == "cuda" else ("float32",)


@contextmanager
def multiplying(precision: Precision) -> Iterator[None]:
    """Multiply in a format while this is open."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
