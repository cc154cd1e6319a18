import pytest
import torch

from spgcl.engine.similarity import comparable_rows


@pytest.mark.parametrize("scale", [1e-44, 1e-35, 1e-20, 1e20, 1e38])
def test_rows_of_any_length_keep_their_direction_and_get_one_that_can_be_squared(scale):
    rows = torch.randn(50, 7, generator=torch.Generator().manual_seed(0)).clamp(-3, 3).round()
    rows[:, 0] = 1
    found = comparable_rows(rows * scale)
    lengths = found.square().sum(dim=1, keepdim=True).sqrt()
    # Numbers as small as the smallest are rounded to few digits.
    assert torch.allclose(
        found / lengths, rows / rows.norm(dim=1, keepdim=True), atol=0.1 if scale < 1e-38 else 1e-6
    )


def test_other_rows_stay_what_they_are():
    rows = torch.randn(50, 7, generator=torch.Generator().manual_seed(0))
    assert comparable_rows(rows) is rows
    mixed = rows.clone()
    mixed[3], mixed[4] = 0, 1e30
    found = comparable_rows(mixed)
    assert torch.equal(found[5:], rows[5:]) and torch.equal(found[3], torch.zeros(7))
    assert torch.equal(found[4], torch.ones(7))
