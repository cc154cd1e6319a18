"""Products with packed and plain rows equal those of plain matrices."""

import pytest
import torch
from packing import needs_packing

from spgcl.engine.fixed_rows import (
    BLOCK_ROWS,
    BlockedRows,
    PackedRows,
    can_pack,
    fixed_rows,
    free_columns,
)


@pytest.mark.parametrize("columns", [2, 5, 30])
@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("kind", [BlockedRows, pytest.param(PackedRows, marks=needs_packing)])
def test_products_are_those_of_plain_matrices(kind, groups, columns):
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(groups, 2 * BLOCK_ROWS, 48, generator=generator)
    weights = torch.randn(groups, columns, 48, generator=generator)
    fixed = kind(rows, columns)
    logits = fixed.logits(weights)
    assert logits.shape == (groups, 2 * BLOCK_ROWS // fixed.block, columns, fixed.block)
    torch.testing.assert_close(logits.movedim(1, 2).flatten(2), weights @ rows.transpose(1, 2))
    expected = logits.movedim(1, 2).flatten(2) @ rows
    torch.testing.assert_close(fixed.gradient(logits), expected, rtol=1e-4, atol=1e-3)


@needs_packing
def test_rows_are_packed_if_torch_can():
    rows = torch.zeros(1, BLOCK_ROWS, 16)
    assert can_pack(rows)
    assert isinstance(fixed_rows(rows, 3), PackedRows)
    assert not can_pack(rows.double())
    assert isinstance(fixed_rows(rows.double(), 3), BlockedRows)
    assert free_columns(rows) < free_columns(rows.double())
