"""Rows of an adjacency with a bounded number of entries, for hubs and large graphs."""

import torch
from torch import Tensor

from spgcl.engine.tensors import SparseMatrix


def sampled_rows(
    adjacency: SparseMatrix, rows: Tensor, fan_out: int, generator: torch.Generator
) -> SparseMatrix:
    """The chosen rows with at most `fan_out` entries each, and each row's own column.

    From a longer row that many entries are drawn with replacement and scaled up, so that a product has the
    right mean. Its own column has value 0: a hop keeps the node, and layers may read it. The cost depends on
    the entries kept only, not on the size of the graph.
    """
    starts = adjacency.rows[rows].long()
    counts = adjacency.rows[rows + 1].long() - starts
    listed = torch.arange(fan_out, device=rows.device).expand(len(rows), fan_out)
    drawn = torch.rand(listed.shape, generator=generator, device=rows.device) * counts[:, None]
    whole = (counts <= fan_out)[:, None]
    positions = torch.where(whole, listed, torch.minimum(drawn.long(), counts[:, None] - 1))
    kept = ~whole | (listed < counts[:, None])
    entries = (starts[:, None] + positions)[kept]
    scale = (
        torch.where(whole, 1.0, counts[:, None] / fan_out).to(adjacency.values.dtype).expand_as(kept)[kept]
    )
    return _with_own(
        adjacency, rows, kept, adjacency.columns[entries], adjacency.values[entries] * scale, whole
    )


def _with_own(
    adjacency: SparseMatrix, rows: Tensor, kept: Tensor, columns: Tensor, values: Tensor, whole: Tensor
) -> SparseMatrix:
    """Add its own column to each row that was cut; whole rows have it already."""
    shape, device = (len(rows), kept.shape[1] + 1), rows.device
    present = torch.cat([kept, ~whole], dim=1)
    all_columns = torch.zeros(shape, dtype=adjacency.columns.dtype, device=device)
    all_values = torch.zeros(shape, dtype=adjacency.values.dtype, device=device)
    all_columns[:, -1] = rows.to(all_columns.dtype)
    all_columns[:, :-1][kept] = columns
    all_values[:, :-1][kept] = values
    pointers = torch.zeros(len(rows) + 1, dtype=adjacency.rows.dtype, device=device)
    torch.cumsum(present.sum(1), 0, out=pointers[1:])
    return SparseMatrix(pointers, all_columns[present], all_values[present], adjacency.num_columns)
