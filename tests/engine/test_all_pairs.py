import math
from collections.abc import Callable
from types import ModuleType

import pytest
import torch
from torch.nn.functional import softplus

from spgcl.engine.all_pairs import HALVED_TILE, MULTIPLE, extended, summed_softplus, upper_tiles
from spgcl.engine.device import arithmetic
from spgcl.engine.kernels import tiles

on_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
DEVICES = ["cpu", pytest.param("cuda", marks=on_cuda)]


def some_rows(count: int, device: str = "cpu") -> torch.Tensor:
    rows = torch.randn(count, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    return rows.to(device).requires_grad_()


@pytest.mark.parametrize("side", [1, 4, 5, 12, 100])
def test_tiles_and_their_mirror_images_cover_every_pair_once(side: int) -> None:
    covered = torch.zeros(12, 12)
    for rows, columns in upper_tiles(12, side):
        covered[rows, columns] += 1
        if rows != columns:
            covered[columns, rows] += 1
    assert (covered == 1).all()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("side", [1, 4, 5, 12, 100, None])
def test_the_sum_over_all_pairs_is_that_of_the_whole_matrix(side: int | None, device: str) -> None:
    rows = some_rows(12, device)
    # Another function follows, so that the incoming gradient is not 1.
    expected = 3 * softplus(rows @ rows.T).sum()
    found = 3 * summed_softplus(rows, side)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(*(torch.autograd.grad(value, rows)[0] for value in (found, expected)))


@pytest.mark.parametrize("side", [2, 10])
def test_its_gradient_is_that_of_differences(side: int) -> None:
    assert torch.autograd.gradcheck(lambda rows: summed_softplus(rows, side), some_rows(5))


def test_rows_are_added_on_cuda_alone() -> None:
    rows = some_rows(12)
    assert extended(rows) is rows


@on_cuda
def test_on_cuda_rows_of_zeros_fill_up_a_multiple() -> None:
    rows = some_rows(12, "cuda")
    assert extended(rows).shape == (MULTIPLE, 5)
    assert torch.equal(extended(rows)[:12], rows) and not extended(rows)[12:].any()


@on_cuda
@pytest.mark.parametrize("scale", [1e-4, 0.3, 30.0])
@pytest.mark.parametrize(("count", "side"), [(5, None), (100, 64), (803, None), (1501, 1024), (1280, 512)])
def test_float16_has_the_value_and_gradient_of_float64(
    count: int, side: int | None, scale: float, launches: Callable[[ModuleType], list[str]]
) -> None:
    launched = launches(tiles)
    exact = scale * torch.randn(count, 24, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    exact = exact.cuda().requires_grad_()
    rounded = exact.detach().float().requires_grad_()
    with arithmetic(torch.device("cuda"), "tf32"):
        found = summed_softplus(rounded, side)
    spans = -(-count // (side or HALVED_TILE))
    assert launched == ["logistic"] * (spans * (spans + 1) // 2)
    expected = softplus(exact @ exact.T).sum()
    assert found.item() == pytest.approx(expected.item(), rel=1e-3)
    (gradients,), (wanted,) = torch.autograd.grad(found, rounded), torch.autograd.grad(expected, exact)
    # Of large products a few are near zero, where the logistic function is steep.
    assert (gradients - wanted).norm() < (1e-2 if scale > 1 else 2e-3) * wanted.norm()


@on_cuda
@pytest.mark.parametrize("count", [5, 100])
def test_float16_zeros_have_a_value_and_no_gradient(count: int) -> None:
    rows = torch.zeros(count, 8, device="cuda", requires_grad=True)
    with arithmetic(torch.device("cuda"), "tf32"):
        found = summed_softplus(rows)
    assert found.item() == pytest.approx(count**2 * math.log(2), rel=1e-5)
    assert not torch.autograd.grad(found, rows)[0].any()
