"""The largest entries of rows, found by groups."""

import pytest
import torch

from spgcl.engine.similarity import GROUP, largest

WIDTHS = [1, GROUP - 1, GROUP, 8 * GROUP, 8 * GROUP + 1, 20 * GROUP + 63]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("count", [1, 4, 10])
def test_same_as_topk(width, count):
    count = min(count, width)
    values = torch.randn(50, width, generator=torch.Generator().manual_seed(width))
    found, columns = largest(values, count)
    expected = values.topk(count, dim=1)
    assert torch.equal(found, expected.values)
    assert torch.equal(columns, expected.indices)


def test_all_wanted_in_one_group_or_among_the_columns_left_over():
    values = torch.zeros(2, 16 * GROUP + 5)
    values[0, 3 * GROUP : 3 * GROUP + 4] = torch.tensor([1.0, 4.0, 2.0, 3.0])
    values[1, -4:] = torch.tensor([-1.0, torch.inf, 2.0, 3.0])
    found, columns = largest(values, 3)
    assert found.tolist() == [[4, 3, 2], [torch.inf, 3, 2]]
    first, last = 3 * GROUP, values.shape[1]
    assert columns.tolist() == [[first + 1, first + 3, first + 2], [last - 3, last - 1, last - 2]]


def test_rows_need_not_lie_together_in_memory():
    values = torch.randn(30 * GROUP, 9, generator=torch.Generator().manual_seed(0)).T
    assert torch.equal(largest(values, 3)[1], values.topk(3, dim=1).indices)


def test_equal_entries_give_distinct_columns():
    found, columns = largest(torch.ones(3, 40 * GROUP + 7), 5)
    assert (found == 1).all()
    assert all(len(set(row)) == 5 for row in columns.tolist())
