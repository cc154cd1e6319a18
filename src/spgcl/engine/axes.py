"""Leading axes of rows: the orthonormal directions along which they are longest."""

import torch
from torch import Tensor

# More axes than wanted make the wanted ones converge in this many rounds.
SPARE_AXES = 32
ROUNDS = 3


@torch.no_grad()
def leading_axes(rows: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """The leading right singular vectors of dense rows, shape (width, count), largest first.

    Few columns are decomposed exactly, many by subspace iteration from a random start, which is drawn on the
    host so that it is the same on every device.
    """
    width = rows.shape[1]
    if width <= 2 * count:
        return principal_axes(rows)[:, :count]
    basis = torch.randn(width, min(width, count + SPARE_AXES), generator=generator).to(rows)
    for _ in range(ROUNDS):
        basis = torch.linalg.qr(rows.T @ (rows @ basis)).Q
    return basis @ principal_axes(rows @ basis)[:, :count]


def principal_axes(rows: Tensor) -> Tensor:
    """All right singular vectors of dense rows, shape (width, width), largest first."""
    vectors: Tensor = torch.linalg.eigh(rows.T @ rows).eigenvectors
    return vectors.flip(1)
