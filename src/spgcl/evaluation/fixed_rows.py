"""Products with rows that stay while what they meet changes, as in every epoch of a probe."""

from typing import Protocol

import torch
from torch import Tensor

# Rows come in blocks of this many: products of few columns are faster over them than over all rows.
BLOCK_ROWS = 192
# Below this many columns a product takes the time to read its rows, however few columns there are: where rows
# are read as they are, and where they were laid out for it.
_FREE_COLUMNS = 12
_FREE_COLUMNS_PACKED = 4


class FixedRows(Protocol):
    """Rows of several groups, for products with all of a group.

    Attributes:
        block: How many rows a block of the results has.
    """

    block: int

    def logits(self, weights: Tensor) -> Tensor:
        """Weights (groups, columns, width) times the rows: (groups, blocks, columns, rows of a block)."""
        ...

    def gradient(self, residuals: Tensor) -> Tensor:
        """From residuals of that shape back to weights: (groups, columns, width)."""
        ...


def fixed_rows(rows: Tensor, columns: int) -> FixedRows:
    """The fastest way for rows (groups, whole blocks of rows, width) that meet so many columns."""
    return PackedRows(rows, columns) if can_pack(rows) else BlockedRows(rows, columns)


def free_columns(rows: Tensor) -> int:
    """Up to how many columns a product with these rows takes no longer than with fewer."""
    return _FREE_COLUMNS_PACKED if can_pack(rows) else _FREE_COLUMNS


def can_pack(rows: Tensor) -> bool:
    """Whether the library for products that torch has on CPU can lay out these rows beforehand."""
    known = (
        torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
        and hasattr(torch.ops.mkldnn, "_reorder_linear_weight")
    )
    return bool(known and rows.device.type == "cpu" and rows.dtype == torch.float32)


class BlockedRows:
    """Rows as they are, by batched products."""

    def __init__(self, rows: Tensor, columns: int) -> None:
        self.block = BLOCK_ROWS if columns < _FREE_COLUMNS else rows.shape[1]
        self._rows = rows.view(len(rows), -1, self.block, rows.shape[-1])

    def logits(self, weights: Tensor) -> Tensor:
        """See `FixedRows`."""
        return weights[:, None] @ self._rows.transpose(2, 3)

    def gradient(self, residuals: Tensor) -> Tensor:
        """See `FixedRows`."""
        parts = residuals @ self._rows
        return parts.sum(dim=1) if parts.shape[1] > 1 else parts.squeeze(1)


class PackedRows:
    """Rows laid out once for the registers of the processor, which a product of few columns does each time.

    They are the weights of a linear layer, whose input is what they meet; the layers are those that torch's
    compiler makes of a module's.
    """

    def __init__(self, rows: Tensor, columns: int) -> None:
        self.block = rows.shape[1]
        pack = torch.ops.mkldnn._reorder_linear_weight
        self._rows = [pack(group, columns) for group in rows]
        self._columns = [pack(group.T.contiguous(), columns) for group in rows]

    def logits(self, weights: Tensor) -> Tensor:
        """See `FixedRows`."""
        return _each(weights, self._rows)[:, None]

    def gradient(self, residuals: Tensor) -> Tensor:
        """See `FixedRows`."""
        return _each(residuals.squeeze(1), self._columns)


def _each(inputs: Tensor, packed: list[Tensor]) -> Tensor:
    """Every group's inputs through its own layer."""
    layer = torch.ops.mkldnn._linear_pointwise
    results = [layer(one, weight, None, "none", [], "") for one, weight in zip(inputs, packed, strict=True)]
    return results[0][None] if len(results) == 1 else torch.stack(results)
