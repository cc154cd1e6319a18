"""Sparse products and neighbourhoods on CUDA, of fixed shapes."""

import math
from functools import cache

import torch
from torch import Tensor

from spgcl.engine.kernels.compiled import uses_tf32
from spgcl.engine.kernels.step import LANES, NARROW, Argument, launch

# As in the source: columns of a wide block, and blocks that search for the largest magnitude.
WIDE, TOPS = 512, 256
# Entries of a sparse row that one block adds up.
PIECE = 256
# A sparse product in TF32 reads float16 if it reads this many floats, and every row this many times.
FLOAT16_FROM, FLOAT16_READS = 2**25, 16

# Rows of a sparse matrix in pieces of at most `PIECE` entries: pieces (row, first entry, end, slot or -1),
# rows to join (row, first slot, end), and how many slots there are.
Pieces = tuple[Tensor, Tensor, int]


def chosen_rows(
    rows: Tensor,
    columns: Tensor,
    values: Tensor,
    dense: Tensor,
    chosen: Tensor,
    dense_rows: Tensor,
    *,
    longest: int,
) -> Tensor:
    """Chosen rows of a sparse matrix times a dense one.

    Args:
        rows: Row pointers, int32.
        columns: Column of every entry, int32.
        values: Value of every entry, float32.
        dense: The dense factor.
        chosen: Row of the sparse matrix for every row of the result, int32; -1 gives a row of zeros.
        dense_rows: Row of `dense` for every column of the sparse matrix, int32; -1 skips the column.
        longest: Most entries in a row, which decides how many warps share one.
    """
    dense = dense.contiguous()
    width = dense.shape[1]
    out = torch.empty(len(chosen), width, device=dense.device)
    kind, tile = _breadth(width)
    grid = (len(chosen), -(-width // tile))
    block = (32, 16 if longest > 512 else 8 if longest > 128 else 2)
    span = 32 if longest > 512 else 8
    matrix = (rows, columns, values)
    shared = 4 * tile * block[1]
    launch(f"{kind}_rows", grid, block, *matrix, dense, out, chosen, dense_rows, width, span, shared=shared)
    return out


def all_rows(
    pieces: Pieces, columns: Tensor, values: Tensor, dense: Tensor, chosen: Tensor, dense_rows: Tensor
) -> Tensor:
    """All rows of a sparse matrix times a dense one; like `chosen_rows`, with long rows cut into pieces.

    If TF32 is allowed, large products read float16, which keeps as many digits.

    Args:
        pieces: Result of `cut_rows`.
        columns: Column of every entry, int32.
        values: Value of every entry, float32.
        dense: The dense factor.
        chosen: -1 for the rows that become zeros, int32.
        dense_rows: Row of `dense` for every column of the sparse matrix, int32; -1 skips the column.
    """
    parts, joins, slots = pieces
    dense = dense.contiguous()
    width = dense.shape[1]
    out = torch.empty(len(chosen), width, device=dense.device)
    spare = torch.empty(max(1, slots), width, device=dense.device)
    kind, tile = _breadth(width)
    mean = len(columns) / max(1, len(parts))
    block = (32, 4 if mean > 16 else 2)
    # Rows of common length keep all warps busy.
    span = min(32, max(4, math.ceil(mean / block[1])))
    grid, shared = (len(parts), -(-width // tile)), 4 * tile * block[1]
    read: tuple[Tensor, ...] = (dense,)
    often = len(columns) >= FLOAT16_READS * len(dense) and len(columns) * width >= FLOAT16_FROM
    if often and kind == "wide" and width % 8 == 0 and uses_tf32(dense):
        kind, read = "float16", scaled_float16(dense)
    matrix: tuple[Argument, ...] = (parts, columns, values, *read)
    results = (out, spare, chosen, dense_rows, width, span)
    launch(f"{kind}_pieces", grid, block, *matrix, *results, shared=shared)
    if len(joins):
        launch("join_pieces", (len(joins), -(-width // NARROW)), (NARROW, 1), joins, spare, out, width)
    return out


def scaled_float16(dense: Tensor) -> tuple[Tensor, Tensor]:
    """A matrix in float16, and the largest magnitude by which it was scaled."""
    tops, largest = torch.empty(TOPS, device=dense.device), torch.empty(1, device=dense.device)
    out = torch.empty(dense.shape, dtype=torch.float16, device=dense.device)
    quarters = dense.numel() // 4
    launch("largest_magnitude", (TOPS, 1), (TOPS, 1), dense, tops, quarters)
    launch("to_float16", (-(-quarters // TOPS), 1), (TOPS, 1), dense, tops, largest, out, quarters)
    return out, largest


def _breadth(width: int) -> tuple[str, int]:
    return ("wide", WIDE) if width % 4 == 0 and width > NARROW else ("narrow", NARROW)


def cut_rows(rows: Tensor) -> Pieces:
    """Cut the rows of a sparse matrix into pieces of few entries."""
    pointers = rows.cpu().long()
    counts = pointers.diff()
    number = (-(-counts // PIECE)).clamp(min=1)
    row = torch.arange(len(counts)).repeat_interleave(number)
    within = torch.arange(len(row)) - (number.cumsum(0) - number)[row]
    first = pointers[row] + within * PIECE
    end = torch.minimum(first + PIECE, pointers[row + 1])
    cut_up = number[row] > 1
    slot = torch.where(cut_up, cut_up.cumsum(0) - 1, -1)
    long_rows = (number > 1).nonzero().reshape(-1)
    ends = number[long_rows].cumsum(0)
    joins = torch.stack([long_rows, ends - number[long_rows], ends], dim=1)
    # Long pieces first: the ones that start last should be short.
    order = torch.argsort(end - first, descending=True, stable=True)
    pieces = torch.stack([row, first, end, slot], dim=1)[order]
    device = rows.device
    return pieces.int().to(device).contiguous(), joins.int().to(device).contiguous(), int(cut_up.sum())


def mark_columns(
    pieces: Pieces, columns: Tensor, row_numbers: Tensor, num_columns: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The columns that occur in the rows whose number is not -1.

    Returns:
        Their indices, -1 at columns that do not occur; a mask of bytes; and how many occur.
    """
    parts, _, _ = pieces
    # The first eight bytes hold the count: one fill clears count and mask.
    cleared = torch.zeros(8 + num_columns, dtype=torch.uint8, device=columns.device)
    size, mask = cleared[:8].view(torch.int64)[0], cleared[8:]
    nodes = torch.empty(num_columns, dtype=torch.int32, device=columns.device)
    grid = (-(-len(parts) // LANES), 1)
    launch("mark_columns", grid, (32, LANES), parts, columns, row_numbers, mask, len(parts))
    launch("list_marked", (-(-num_columns // 256), 1), (256, 1), mask, nodes, size, num_columns)
    return nodes, mask, size


def assign_rows(present: Tensor, length: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Number the nodes of a mask, at most `length`, in ascending order.

    Returns:
        Node of every row, -1 behind the last; row of every node, -1 if it has none; which rows have a node,
        as bytes; and how many have.
    """
    count, device = len(present), present.device
    running = present.cumsum(0)
    nodes = torch.empty(length, dtype=torch.int32, device=device)
    row_of_node = torch.empty(count, dtype=torch.int32, device=device)
    mask = torch.empty(length, dtype=torch.uint8, device=device)
    size = torch.empty((), dtype=torch.int64, device=device)
    grid = (-(-max(count, length) // 256), 1)
    launch("assign_rows", grid, (256, 1), running, nodes, row_of_node, mask, size, count, length)
    return nodes, row_of_node, mask, size


def count_reaching_seeds(
    pieces: Pieces, columns: Tensor, seeds: Tensor, hops: int, *, num_nodes: int, any_seed: bool
) -> Tensor:
    """How many of the distinct seeds reach each node within `hops`, or with `any_seed` whether one does.

    Args:
        pieces: Result of `cut_rows` for the rows that list the nodes from which each node is reached.
        columns: Those nodes.
        seeds: Distinct nodes.
        hops: How far they reach.
        num_nodes: How many nodes there are.
        any_seed: Count at most one.
    """
    parts, _, _ = pieces
    words = -(-len(seeds) // 32)
    bits = torch.zeros(num_nodes, words, dtype=torch.int32, device=seeds.device)
    word_of_seed, bit_of_seed = _bits_of_seeds(len(seeds), seeds.device)
    bits.view(-1).scatter_(0, seeds * words + word_of_seed, bit_of_seed)
    for _ in range(hops):
        after = torch.zeros_like(bits)
        grid = (-(-len(parts) // LANES), 1)
        launch("expand_hop", grid, (32, LANES), parts, columns, bits, after, len(parts), words)
        bits = after
    counts = torch.empty(num_nodes, dtype=torch.int32, device=seeds.device)
    launch("count_bits", (-(-num_nodes // 256), 1), (256, 1), bits, counts, num_nodes, words, int(any_seed))
    return counts


@cache
def _bits_of_seeds(count: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """The word of every seed, and its bit in that word."""
    # Computed on the host: loading CUDA kernels for it would take longer than all else before the first step.
    numbers = torch.arange(count)
    bits = torch.bitwise_left_shift(torch.ones_like(numbers), numbers % 32).to(torch.int32)
    return (numbers // 32).to(device), bits.to(device)
