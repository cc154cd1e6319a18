import pytest
import torch

from spgcl.engine.axes import leading_axes


@pytest.mark.parametrize(("width", "count"), [(30, 20), (200, 5)])
def test_axes_are_those_of_the_singular_value_decomposition(width, count):
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(400, width, generator=generator) * 0.9 ** torch.arange(width)

    axes = leading_axes(rows, count, generator)

    exact = torch.linalg.svd(rows, full_matrices=False).Vh[:count].T
    assert axes.shape == (width, count)
    torch.testing.assert_close((axes * exact).sum(dim=0).abs(), torch.ones(count), rtol=0, atol=1e-3)


def test_fewer_rows_than_axes_give_orthonormal_axes_that_span_them():
    rows = torch.randn(7, 500, generator=torch.Generator().manual_seed(1))

    axes = leading_axes(rows, 40, torch.Generator().manual_seed(0))

    torch.testing.assert_close(axes.T @ axes, torch.eye(40), rtol=0, atol=1e-4)
    torch.testing.assert_close(rows @ axes @ axes.T, rows, rtol=1e-3, atol=1e-3)
