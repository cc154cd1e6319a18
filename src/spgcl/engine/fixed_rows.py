"""Products with rows that stay the same while the other factor changes, as in the epochs of a probe."""

import torch
from torch import Tensor

# Products with few columns are faster in blocks of this many rows than over all rows.
BLOCK_ROWS = 192
# Up to so many columns, the time of a product is that of reading the rows: as they are, or packed.
_FREE_COLUMNS = 12
_FREE_COLUMNS_PACKED = 4


def fixed_rows(rows: Tensor, columns: int) -> "BlockedRows | PackedRows":
    """The fastest form of rows (groups, whole blocks of rows, width) for products with so many columns."""
    return PackedRows(rows, columns) if can_pack(rows) else BlockedRows(rows, columns)


def free_columns(rows: Tensor) -> int:
    """Up to how many columns a product with these rows takes no longer than with fewer."""
    return _FREE_COLUMNS_PACKED if can_pack(rows) else _FREE_COLUMNS


def can_pack(rows: Tensor) -> bool:
    """Whether torch's matrix library for CPUs can pack these rows beforehand."""
    known = (
        torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
        and hasattr(torch.ops.mkldnn, "_reorder_linear_weight")
    )
    return bool(known and rows.device.type == "cpu" and rows.dtype == torch.float32)


class BlockedRows:
    """Rows as they are, by batched products.

    Attributes:
        block: How many rows a block of the results has.
    """

    def __init__(self, rows: Tensor, columns: int) -> None:
        self.block = BLOCK_ROWS if columns < _FREE_COLUMNS else rows.shape[1]
        self._rows = rows.view(len(rows), -1, self.block, rows.shape[-1])

    def logits(self, weights: Tensor) -> Tensor:
        """Weights (groups, columns, width) times the rows: (groups, blocks, columns, rows of a block)."""
        return weights[:, None] @ self._rows.transpose(2, 3)

    def gradient(self, residuals: Tensor) -> Tensor:
        """From residuals of that shape back to weights: (groups, columns, width)."""
        parts = residuals @ self._rows
        return parts.sum(dim=1) if parts.shape[1] > 1 else parts.squeeze(1)


class PackedRows:
    """The same with rows packed once for the processor, which a product of few columns does each time.

    Rows are packed as the weights of a linear layer whose input is the other factor, by the operations that
    torch's compiler uses for such layers.
    """

    def __init__(self, rows: Tensor, columns: int) -> None:
        self.block = rows.shape[1]
        pack = torch.ops.mkldnn._reorder_linear_weight
        self._rows = [pack(group, columns) for group in rows]
        self._columns = [pack(group.T.contiguous(), columns) for group in rows]

    def logits(self, weights: Tensor) -> Tensor:
        """See `BlockedRows`."""
        return _by_group(weights, self._rows)[:, None]

    def gradient(self, residuals: Tensor) -> Tensor:
        """See `BlockedRows`."""
        return _by_group(residuals.squeeze(1), self._columns)


def _by_group(inputs: Tensor, packed: list[Tensor]) -> Tensor:
    """The inputs of every group through the group's own layer."""
    layer = torch.ops.mkldnn._linear_pointwise
    results = [layer(one, weight, None, "none", [], "") for one, weight in zip(inputs, packed, strict=True)]
    return results[0][None] if len(results) == 1 else torch.stack(results)
