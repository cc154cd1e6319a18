"""Rows of an adjacency with a bounded number of entries, for hubs and large graphs."""

import torch
from torch import Tensor

from spgcl.engine.patterns import Pattern
from spgcl.engine.tensors import SparseMatrix


def sampled_rows(
    adjacency: SparseMatrix, rows: Tensor, fan_out: int, generator: torch.Generator
) -> SparseMatrix:
    """The chosen rows with at most `fan_out` entries each, and each row's own column.

    From a longer row that many entries are drawn with replacement and scaled up, so that a product has the
    right mean. Its own column has value 0: a hop keeps the node, and layers may read it. The cost depends on
    the entries kept only, not on the size of the graph.
    """
    counts = adjacency.counts_of(rows).long()[:, None]
    listed = torch.arange(fan_out, device=rows.device).expand(len(rows), fan_out)
    drawn = torch.rand(listed.shape, generator=generator, device=rows.device) * counts
    whole = counts <= fan_out
    positions = torch.minimum(torch.where(whole, listed, drawn.long()), counts - 1)
    columns, values = adjacency.entries(rows[:, None], positions)
    scale = torch.where(whole, 1.0, counts / fan_out).to(values.dtype)
    columns = torch.cat([columns, rows[:, None].to(columns.dtype)], dim=1)
    values = torch.cat([values * scale, scale.new_zeros(len(rows), 1)], dim=1)
    # A whole row has its own column already.
    kept = torch.cat([listed < counts, ~whole], dim=1)
    pointers = torch.zeros(len(rows) + 1, dtype=adjacency.rows.dtype, device=rows.device)
    torch.cumsum(kept.sum(1), 0, out=pointers[1:])
    return SparseMatrix(Pattern(pointers, columns[kept], adjacency.shape[1]), values[kept])
