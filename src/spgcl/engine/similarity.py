"""Rows compared by cosine similarity: rows that can be squared, rows of length one, and the nearest rows."""

import torch
from torch import Tensor

# With a largest entry between these, squares and products of rows neither overflow nor vanish in float32.
SMALLEST, LARGEST = 1e-10, 1e15
# `largest` compares groups of this many neighbouring entries by their largest entry first.
GROUP = 64

_SQUARED_ENTRIES = 2**22
_SIMILARITY_ENTRIES = 2**24


def comparable_rows(rows: Tensor) -> Tensor:
    """The rows, with those too long or too short to be squared divided by their largest absolute entry."""
    # On CPU, `amax` and `amin` together take an eighth of the time of `aminmax`.
    largest = torch.maximum(rows.amax(dim=1), -rows.amin(dim=1))
    extreme = (largest > 0) & ((largest < SMALLEST) | (largest > LARGEST))
    return rows / torch.where(extreme, largest, 1.0)[:, None] if bool(extreme.any()) else rows


def squared_lengths(rows: Tensor) -> Tensor:
    """Squared L2 norms of the rows, computed in blocks to avoid a copy of all rows."""
    blocks = torch.split(rows, max(1, _SQUARED_ENTRIES // rows.shape[1]))
    return torch.cat([(block * block).sum(dim=1) for block in blocks])


def unit_rows(rows: Tensor) -> Tensor:
    """Rows divided by their L2 norm; rows whose squared norm underflows stay close to zero."""
    smallest = torch.finfo(rows.dtype).tiny
    return rows / squared_lengths(rows).clamp(min=smallest).sqrt()[:, None]


@torch.no_grad()
def nearest_rows(
    rows: Tensor, anchors: Tensor, count: int, *, candidates: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The most cosine-similar rows of each anchor, by decreasing similarity: similarities and row indices.

    Args:
        rows: Rows of length one, see `unit_rows`.
        anchors: Indices of the rows whose nearest rows are wanted.
        count: How many nearest rows per anchor; all candidates if there are fewer.
        candidates: Indices of the rows to choose from; by default all rows but the anchor itself.
    """
    references = rows if candidates is None else rows[candidates]
    count = min(count, len(references) - (candidates is None))
    blocks = torch.split(anchors, max(1, _SIMILARITY_ENTRIES // len(references)))
    # All blocks share this memory: on CPU, fresh pages for each of them cost a tenth of the time.
    all_queries = rows.new_empty(len(blocks[0]), rows.shape[1])
    all_similarities = rows.new_empty(len(blocks[0]), len(references))
    found = []
    for block in blocks:
        queries = torch.index_select(rows, 0, block, out=all_queries[: len(block)])
        similarities = torch.mm(queries, references.T, out=all_similarities[: len(block)])
        if candidates is None:
            similarities[torch.arange(len(block), device=rows.device), block] = -torch.inf
        found.append(largest(similarities, count))
    values, columns = (torch.cat(parts) for parts in zip(*found, strict=True))
    return values, columns if candidates is None else candidates[columns]


def largest(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` largest entries of every row in descending order, and their columns.

    `topk` reads a row many times. Here one pass finds the largest entry of every group of columns: the result
    lies in the `count` groups with the largest of these, or in the few columns left over.
    """
    width = values.shape[1]
    groups = width // GROUP
    if groups <= 2 * count:
        found = values.topk(count, dim=1)
        return found.values, found.indices
    grouped = values[:, : groups * GROUP].reshape(-1, groups, GROUP)
    chosen = grouped.amax(dim=2).topk(count, dim=1).indices
    columns = (chosen[:, :, None] * GROUP + torch.arange(GROUP, device=values.device)).flatten(1)
    left_over = torch.arange(groups * GROUP, width, device=values.device).expand(len(values), -1)
    columns = torch.cat([columns, left_over], dim=1)
    best = values.gather(1, columns).topk(count, dim=1)
    return best.values, columns.gather(1, best.indices)
