"""The kernels of a training step as plain operations, on any device and in any precision.

Each has the signature of the function that launches the kernel; `use_oracles` puts them in its place.
"""

import torch
from torch.nn.functional import normalize

from spgcl.engine.activations import activate, follow
from spgcl.engine.kernels import layers, sparse
from spgcl.methods.parts.losses import single_pass_contrastive
from spgcl.methods.parts.pools import top_similar


def use_oracles(monkeypatch):
    """Compute by plain operations whatever the kernels would."""
    for oracle in (chosen_rows, all_rows, mark_columns, assign_rows, count_reaching_seeds):
        monkeypatch.setattr(sparse, oracle.__name__, oracle)
    for oracle in (draw_distinct, activated, unit_rows, contrast):
        monkeypatch.setattr(layers, oracle.__name__, oracle)


def row_of_entry(pieces):
    """The row of every entry, from rows cut into pieces."""
    row, first, end, _ = pieces[0].long().T
    order = first.argsort()
    return row[order].repeat_interleave((end - first)[order])


def dense_matrix(rows, columns, values, shape):
    matrix = torch.zeros(shape, dtype=values.dtype, device=values.device)
    matrix[rows, columns.long()] = values
    return matrix


def product(matrix, dense, chosen, dense_rows):
    """Chosen rows of a dense matrix times `dense`; -1 skips a row or a column."""
    read = dense[dense_rows.long().clamp(min=0)] * (dense_rows >= 0)[:, None]
    return (matrix @ read)[chosen.long().clamp(min=0)] * (chosen >= 0)[:, None]


def chosen_rows(rows, columns, values, dense, chosen, dense_rows, *, longest):
    assert int(rows.diff().max()) == longest
    num_rows = len(rows) - 1
    owners = torch.arange(num_rows, device=rows.device).repeat_interleave(rows.diff())
    matrix = dense_matrix(owners, columns, values, (num_rows, len(dense_rows)))
    return product(matrix, dense, chosen, dense_rows)


def all_rows(pieces, columns, values, dense, chosen, dense_rows):
    matrix = dense_matrix(row_of_entry(pieces), columns, values, (len(chosen), len(dense_rows)))
    return product(matrix, dense, chosen, dense_rows)


def mark_columns(pieces, columns, row_numbers, num_columns):
    mask = torch.zeros(num_columns, dtype=torch.bool, device=columns.device)
    mask[columns[row_numbers[row_of_entry(pieces)] >= 0].long()] = True
    numbers = torch.arange(num_columns, dtype=torch.int32, device=columns.device)
    return numbers.masked_fill(~mask, -1), mask.to(torch.uint8), mask.sum()


def assign_rows(present, length):
    listed = present.nonzero().view(-1).int()
    nodes = torch.cat([listed, listed.new_full((length - len(listed),), -1)])
    row_of_node = (present.cumsum(0) - 1).masked_fill(~present, -1).int()
    return nodes, row_of_node, (nodes >= 0).to(torch.uint8), present.sum()


def count_reaching_seeds(pieces, columns, seeds, hops, *, num_nodes, any_seed):
    ones = torch.ones(len(columns), dtype=torch.float64, device=columns.device)
    reverse = dense_matrix(row_of_entry(pieces), columns, ones, (num_nodes, num_nodes))
    reach = torch.zeros(num_nodes, len(seeds), dtype=torch.float64, device=seeds.device)
    reach[seeds, torch.arange(len(seeds), device=seeds.device)] = 1
    for _ in range(hops):
        reach = (reverse @ reach).sign()
    return (reach.amax(1) if any_seed else reach.sum(1)).int()


def draw_distinct(total, count, key):
    generator = torch.Generator().manual_seed(int(key[0]))
    drawn = torch.randperm(int(total), generator=generator)[:count]
    return torch.cat([drawn, drawn[:1].expand(count - len(drawn))]).to(key.device)


def activated(values, mask, size, *, bias, norm=None, activation, dropout=0.0, keys):
    rows = mask.to(values.dtype)[:, None]
    if norm is None:
        values = values + bias
    else:
        mean = (values * rows).sum(0) / rows.sum()
        variance = ((values - mean).square() * rows).sum(0) / rows.sum()
        follow(norm, mean + bias, variance, int(size))
        norm.num_batches_tracked.add_(1)
        values = (values - mean) * (variance + norm.eps).rsqrt()
        values = values if norm.weight is None else values * norm.weight + norm.bias
    # Not the kernel's draws.
    generator = torch.Generator(values.device).manual_seed(int(keys.take()[0])) if dropout else None
    return activate(values, activation, dropout, generator) * rows


def unit_rows(values):
    return normalize(values, dim=1)


def scrambled(values):
    """The generator's mixing of 32 bits."""
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        values = ((values ^ (values >> shift)) * factor) & 0xFFFFFFFF
    return values ^ (values >> 16)


def drawn_columns(key, height, negatives, size):
    """Columns of negatives, as the kernel draws them."""
    numbers = torch.arange(height * negatives, device=key.device).view(height, negatives)
    first, second = key.long() & 0xFFFFFFFF
    random = scrambled(scrambled((numbers + first) & 0xFFFFFFFF) ^ second)
    return (random * size) >> 32


def contrast(
    similarities, anchors, pool, size, key, *,
    anchors_are_pool, positives, negatives, own_positive, negative_weight,
):  # fmt: skip
    height, width = similarities.shape
    left_out = torch.arange(width, device=size.device) >= size
    if not own_positive:
        left_out = left_out | (anchors[:, None] == pool)
    return single_pass_contrastive(
        similarities.gather(1, top_similar(similarities.detach(), positives, left_out)),
        similarities.gather(1, drawn_columns(key, height, negatives, size)),
        negative_weight=negative_weight,
        anchors=torch.arange(height, device=size.device) < size if anchors_are_pool else None,
    )
