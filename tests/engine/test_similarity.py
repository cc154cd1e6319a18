import pytest
import torch
from graphs import seeded

from spgcl.engine.similarity import GROUP, comparable_rows, largest, nearest_rows, unit_rows


@pytest.mark.parametrize("scale", [1e-44, 1e-35, 1e-20, 1e20, 1e38])
def test_rows_of_any_length_keep_their_direction_and_get_one_that_can_be_squared(scale):
    rows = torch.randn(50, 7, generator=seeded(0)).clamp(-3, 3).round()
    rows[:, 0] = 1
    found = comparable_rows(rows * scale)
    lengths = found.square().sum(dim=1, keepdim=True).sqrt()
    # Numbers as small as the smallest are rounded to few digits.
    assert torch.allclose(
        found / lengths, rows / rows.norm(dim=1, keepdim=True), atol=0.1 if scale < 1e-38 else 1e-6
    )


def test_other_rows_stay_what_they_are():
    rows = torch.randn(50, 7, generator=seeded(0))
    assert comparable_rows(rows) is rows
    mixed = rows.clone()
    mixed[3], mixed[4] = 0, 1e30
    found = comparable_rows(mixed)
    assert torch.equal(found[5:], rows[5:]) and torch.equal(found[3], torch.zeros(7))
    assert torch.equal(found[4], torch.ones(7))


@pytest.mark.parametrize("scale", [1e-25, 1.0, 1e15])
def test_unit_rows_have_length_one_or_vanish(scale):
    rows = torch.randn(50, 7, generator=seeded(0)) * scale
    rows[3] = 0
    found = unit_rows(rows)
    lengths = found.norm(dim=1)
    assert torch.isfinite(found).all()
    assert lengths[3] == 0
    if scale == 1e-25:
        assert (lengths < 1e-5).all()
    else:
        assert torch.allclose(found[4:], torch.nn.functional.normalize(rows[4:], dim=1))


@pytest.mark.parametrize("entries", [2**24, 100])
@pytest.mark.parametrize("candidates", [None, torch.arange(1, 40, 3)])
def test_nearest_rows_are_those_of_naive_loops_in_any_blocks(candidates, entries, monkeypatch):
    monkeypatch.setattr("spgcl.engine.similarity._SIMILARITY_ENTRIES", entries)
    rows = unit_rows(torch.randn(40, 6, generator=seeded()))
    anchors = torch.arange(0, 40, 3)
    similarities, found = nearest_rows(rows, anchors, 5, candidates=candidates)
    for anchor, near, values in zip(anchors.tolist(), found.tolist(), similarities, strict=True):
        others = range(40) if candidates is None else candidates.tolist()
        known = {row: float(rows[anchor] @ rows[row]) for row in others if row != anchor}
        expected = sorted(known, key=known.get, reverse=True)[:5]
        assert near == expected
        torch.testing.assert_close(values, torch.tensor([known[row] for row in expected]))


def test_fewer_rows_than_asked_for_are_all_given():
    rows = torch.eye(4)
    assert nearest_rows(rows, torch.arange(4), 9)[1].shape == (4, 3)
    assert nearest_rows(rows, torch.arange(2), 9, candidates=torch.tensor([2, 3]))[1].shape == (2, 2)
    assert nearest_rows(rows[:1], torch.arange(1), 9)[1].shape == (1, 0)


WIDTHS = [1, GROUP - 1, GROUP, 8 * GROUP, 8 * GROUP + 1, 20 * GROUP + 63]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("count", [1, 4, 10])
def test_same_as_topk(width, count):
    count = min(count, width)
    values = torch.randn(50, width, generator=seeded(width))
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
    values = torch.randn(30 * GROUP, 9, generator=seeded(0)).T
    assert torch.equal(largest(values, 3)[1], values.topk(3, dim=1).indices)


def test_equal_entries_give_distinct_columns():
    found, columns = largest(torch.ones(3, 40 * GROUP + 7), 5)
    assert (found == 1).all()
    assert all(len(set(row)) == 5 for row in columns.tolist())
