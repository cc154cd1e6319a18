"""The kernels of a training step on CUDA: sparse rows, neighbourhoods, draws, a layer, the contrast.

They are compiled when first used, by the compiler that is part of PyTorch, and kept in the user's cache
folder. Everything here has fixed shapes and never waits for the host, so that a step can be recorded once and
replayed.
"""

import math
from functools import cache
from typing import Any

import torch
from torch import Tensor

from spgcl.engine.kernels.compiled import load_kernels, rounds_factors

NAMES = (
    "narrow_rows",
    "wide_rows",
    "narrow_pieces",
    "wide_pieces",
    "largest",
    "halve",
    "halved_pieces",
    "join",
    "mark",
    "number",
    "spread",
    "count_bits",
    "place",
    "draw",
    "moments",
    "settle_moments",
    "activate",
    "activate_sums",
    "settle_sums",
    "activate_gradient",
    "unit",
    "unit_gradient",
    "contrast",
)
# As in the source: columns a block, rows of threads in it, blocks that look for the largest number.
NARROW, WIDE, LANES, ROWS_SETTLED, TOPS = 128, 512, 8, 32, 256
# Entries of a sparse row that one block adds up.
PIECE = 256
# Halving what a sparse product reads pays where it reads this many floats, and every row so many times.
HALVED_FROM, HALVED_READS = 2**25, 16
# Blocks that keep an accelerator busy: columns are summed over as many chunks of rows as that takes.
BLOCKS = 2048
# Floats of shared memory that a block has without asking for more.
SHARED = 48 * 1024 // 4 - 128

Argument = Tensor | int | float


def available() -> bool:
    """Whether this PyTorch can compile kernels for the accelerator that is here."""
    return torch.cuda.is_available() and torch.version.hip is None and bool(_kernels())


def serve(tensor: Tensor) -> bool:
    """Whether what is computed from a tensor is for the kernels."""
    return tensor.is_cuda and available()


def _kernels() -> dict[str, Any]:
    return load_kernels("step.cu", NAMES)


def _launch(
    name: str, grid: tuple[int, int], block: tuple[int, int], *arguments: Argument, shared: int = 0
) -> None:
    _kernels()[name](grid=(*grid, 1), block=(*block, 1), args=list(arguments), shared_mem=shared)


def chosen_rows(
    rows: Tensor,
    columns: Tensor,
    values: Tensor,
    dense: Tensor,
    nodes: Tensor,
    places: Tensor,
    *,
    longest: int,
) -> Tensor:
    """Chosen rows of a sparse matrix times a dense one.

    Args:
        rows: Row pointers, int32.
        columns: Column of every entry, int32.
        values: Value of every entry, float32.
        dense: The other factor, one row a place.
        nodes: Row of the sparse matrix for every row of the result, int32; -1 gives a row of zeros.
        places: Row of `dense` for every column of the sparse matrix, int32; -1 where it counts nothing.
        longest: Most entries in a row, which decides how many warps share one.
    """
    dense = dense.contiguous()
    width = dense.shape[1]
    out = torch.empty(len(nodes), width, device=dense.device)
    kind, tile = _breadth(width)
    grid = (len(nodes), -(-width // tile))
    block = (32, 16 if longest > 512 else 8 if longest > 128 else 2)
    span = 32 if longest > 512 else 8
    matrix = (rows, columns, values)
    shared = 4 * tile * block[1]
    _launch(f"{kind}_rows", grid, block, *matrix, dense, out, nodes, places, width, span, shared=shared)
    return out


def all_rows(
    pieces: tuple[Tensor, Tensor, int],
    columns: Tensor,
    values: Tensor,
    dense: Tensor,
    nodes: Tensor,
    places: Tensor,
) -> Tensor:
    """All rows of a sparse matrix times a dense one; like `chosen_rows`, with long rows cut into pieces.

    Where dense products may round factors to ten bits of fraction, this one does where it gains by that.

    Args:
        pieces: What `cut` returned for the row pointers.
        columns: Column of every entry, int32.
        values: Value of every entry, float32.
        dense: The other factor, one row a place.
        nodes: -1 for the rows that are to be zeros, int32.
        places: Row of `dense` for every column of the sparse matrix, int32; -1 where it counts nothing.
    """
    parts, joins, slots = pieces
    dense = dense.contiguous()
    width = dense.shape[1]
    out = torch.empty(len(nodes), width, device=dense.device)
    spare = torch.empty(max(1, slots), width, device=dense.device)
    kind, tile = _breadth(width)
    mean = len(columns) / max(1, len(parts))
    block = (32, 4 if mean > 16 else 2)
    # Rows of common length keep all warps busy.
    span = min(32, max(4, math.ceil(mean / block[1])))
    grid, shared = (len(parts), -(-width // tile)), 4 * tile * block[1]
    read: tuple[Tensor, ...] = (dense,)
    often = len(columns) >= HALVED_READS * len(dense) and len(columns) * width >= HALVED_FROM
    if often and kind == "wide" and width % 8 == 0 and rounds_factors(dense):
        kind, read = "halved", halved(dense)
    matrix: tuple[Argument, ...] = (parts, columns, values, *read)
    given = (out, spare, nodes, places, width, span)
    _launch(f"{kind}_pieces", grid, block, *matrix, *given, shared=shared)
    if len(joins):
        _launch("join", (len(joins), -(-width // NARROW)), (NARROW, 1), joins, spare, out, width)
    return out


def halved(dense: Tensor) -> tuple[Tensor, Tensor]:
    """A matrix in half the space, and the largest entry by which it was scaled."""
    tops, largest = torch.empty(TOPS, device=dense.device), torch.empty(1, device=dense.device)
    out = torch.empty(dense.shape, dtype=torch.float16, device=dense.device)
    quarters = dense.numel() // 4
    _launch("largest", (TOPS, 1), (TOPS, 1), dense, tops, quarters)
    _launch("halve", (-(-quarters // TOPS), 1), (TOPS, 1), dense, tops, largest, out, quarters)
    return out, largest


def _breadth(width: int) -> tuple[str, int]:
    return ("wide", WIDE) if width % 4 == 0 and width > NARROW else ("narrow", NARROW)


def cut(rows: Tensor) -> tuple[Tensor, Tensor, int]:
    """Rows of a sparse matrix in pieces of few entries: the pieces, which to join, how many were cut off."""
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
    # Long pieces first: what is started last should not take long.
    order = torch.argsort(end - first, descending=True, stable=True)
    pieces = torch.stack([row, first, end, slot], dim=1)[order]
    device = rows.device
    return pieces.int().to(device).contiguous(), joins.int().to(device).contiguous(), int(cut_up.sum())


def mark(
    pieces: tuple[Tensor, Tensor, int], columns: Tensor, places: Tensor, num_columns: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Which columns occur in the rows whose place is not -1.

    Gives their numbers, -1 for those that do not occur; a mask of bytes; and how many they are.
    """
    parts, _, _ = pieces
    # The eight bytes in front count them: one fill clears both.
    cleared = torch.zeros(8 + num_columns, dtype=torch.uint8, device=columns.device)
    size, mask = cleared[:8].view(torch.int64)[0], cleared[8:]
    nodes = torch.empty(num_columns, dtype=torch.int32, device=columns.device)
    _launch("mark", (-(-len(parts) // LANES), 1), (32, LANES), parts, columns, places, mask, len(parts))
    _launch("number", (-(-num_columns // 256), 1), (256, 1), mask, nodes, size, num_columns)
    return nodes, mask, size


def spread(
    pieces: tuple[Tensor, Tensor, int],
    columns: Tensor,
    seeds: Tensor,
    hops: int,
    *,
    height: int,
    any_seed: bool,
) -> Tensor:
    """How many distinct seeds reach every node within some hops, or whether any does.

    Args:
        pieces: What `cut` returned for rows that list the nodes a node hears of.
        columns: Those nodes.
        seeds: Different nodes.
        hops: How far they reach.
        height: Number of nodes.
        any_seed: Count one or none.
    """
    parts, _, _ = pieces
    words = -(-len(seeds) // 32)
    bits = torch.zeros(height, words, dtype=torch.int32, device=seeds.device)
    numbers, ones = _numbered_bits(len(seeds), seeds.device)
    bits.view(-1).scatter_(0, seeds * words + numbers, ones)
    for _ in range(hops):
        after = torch.zeros_like(bits)
        grid = (-(-len(parts) // LANES), 1)
        _launch("spread", grid, (32, LANES), parts, columns, bits, after, len(parts), words)
        bits = after
    counts = torch.empty(height, dtype=torch.int32, device=seeds.device)
    _launch("count_bits", (-(-height // 256), 1), (256, 1), bits, counts, height, words, int(any_seed))
    return counts


@cache
def _numbered_bits(count: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """The word of every seed, and its bit in that word."""
    # Not on the device: to load its kernels for this would take longer than anything before the first step.
    numbers = torch.arange(count)
    bits = torch.bitwise_left_shift(torch.ones_like(numbers), numbers % 32).to(torch.int32)
    return (numbers // 32).to(device), bits.to(device)


def place(present: Tensor, length: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Rows for the nodes of a mask, at most `length`: nodes, places, mask and size of a level."""
    count, device = len(present), present.device
    running = present.cumsum(0)
    nodes = torch.empty(length, dtype=torch.int32, device=device)
    places = torch.empty(count, dtype=torch.int32, device=device)
    mask = torch.empty(length, dtype=torch.uint8, device=device)
    size = torch.empty((), dtype=torch.int64, device=device)
    grid = (-(-max(count, length) // 256), 1)
    _launch("place", grid, (256, 1), running, nodes, places, mask, size, count, length)
    return nodes, places, mask, size


class Keys:
    """Pairs of numbers that decide all that a kernel draws, one pair a kernel, drawn together."""

    MOST = 16

    def __init__(self, generator: torch.Generator) -> None:
        self.generator = generator
        self._taken = 0
        self._drawn: Tensor | None = None

    def take(self) -> Tensor:
        """The next pair."""
        if self._drawn is None or self._taken == self.MOST:
            shape, device = (self.MOST, 2), self.generator.device
            self._drawn = torch.randint(
                2**31, shape, dtype=torch.int32, generator=self.generator, device=device
            )
            self._taken = 0
        self._taken += 1
        return self._drawn[self._taken - 1]


def draw(total: Tensor, count: int, key: Tensor) -> Tensor:
    """Different numbers below `total`; those beyond it, where `count` is more, repeat the first."""
    out = torch.empty(count, dtype=torch.int64, device=key.device)
    _launch("draw", (-(-count // 128), 1), (128, 1), total, key, out, count)
    return out


@cache
def constant(width: int, value: float, device: torch.device) -> Tensor:
    """A vector of one number, made once."""
    return torch.full((width,), value, device=device)


def _chunks(height: int, width: int) -> tuple[int, int]:
    """Rows a chunk, and how many chunks there are."""
    rows = math.ceil(height / max(1, BLOCKS * NARROW // width))
    chunk = math.ceil(rows / LANES) * LANES
    return chunk, math.ceil(height / chunk)


def normal(
    values: Tensor, mask: Tensor, size: Tensor, bias: Tensor, norm: torch.nn.BatchNorm1d
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Batch norm over the rows of the mask: centre, inverse deviation, factor and offset of every column.

    The running statistics of `norm` move on.
    """
    height, width = values.shape
    device, (chunk, chunks) = values.device, _chunks(height, width)
    means = torch.empty(chunks, width, device=device)
    deviations = torch.empty_like(means)
    sizes = torch.empty(chunks, device=device)
    tiles = -(-width // NARROW)
    parts = (means, deviations, sizes)
    _launch("moments", (tiles, chunks), (32, LANES), values, mask, *parts, height, width, chunk)
    gamma = constant(width, 1.0, device) if norm.weight is None else norm.weight
    beta = constant(width, 0.0, device) if norm.bias is None else norm.bias
    assert norm.running_mean is not None and norm.running_var is not None and norm.momentum is not None
    settled = torch.empty(4, width, device=device)
    known = (size, gamma, beta, bias, norm.running_mean, norm.running_var)
    rates = (float(norm.momentum), float(norm.eps))
    block = (32, ROWS_SETTLED)
    _launch("settle_moments", (tiles, 1), block, *parts, *known, *settled, chunks, width, *rates)
    if norm.num_batches_tracked is not None:
        norm.num_batches_tracked.add_(1)
    centre, inverse, factor, offset = settled
    return centre, inverse, factor, offset


class Activate(torch.autograd.Function):
    """Dropout of PReLU of a scaled and shifted matrix.

    Without batch norm (`normals` None) `scale` is 1 and `shift` the bias. With it they are its gamma and
    beta, `normals` is what `normal` returned, and the gradient goes through mean and deviation too.
    """

    @staticmethod
    def forward(  # noqa: D102
        ctx: Any,
        values: Tensor,
        scale: Tensor,
        shift: Tensor,
        slope: Tensor,
        mask: Tensor,
        size: Tensor,
        key: Tensor,
        rate: float,
        normals: tuple[Tensor, Tensor, Tensor, Tensor] | None,
    ) -> Tensor:
        values = values.contiguous()
        height, width = values.shape
        plain = constant(width, 0.0, values.device)
        centre, inverse, factor, offset = normals or (plain, plain, scale, shift)
        out = torch.empty_like(values)
        dropout = (int(rate * 2**32), 1 / (1 - rate))
        layer = (values, factor, offset, slope, mask, key)
        _launch("activate", (height, 1), (_threads(width // 4), 1), *layer, out, width, *dropout)
        ctx.save_for_backward(*layer, centre, inverse, size)
        ctx.dropout, ctx.normal = dropout, normals is not None
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # noqa: D102
        values, factor, offset, slope, mask, key, centre, inverse, size = ctx.saved_tensors
        gradient = gradient.contiguous()
        height, width = values.shape
        (chunk, chunks), tiles = _chunks(height, width), -(-width // NARROW)
        sums = torch.empty(3, chunks, width, device=values.device)
        out = torch.empty_like(values)
        shape = (height, width, chunk, chunks, int(ctx.normal))
        layer = (values, factor, offset)
        given = (centre, slope, mask, key, gradient)
        block = (32, LANES)
        _launch("activate_sums", (tiles, chunks), block, *layer, *given, sums, out, *shape, *ctx.dropout)
        shift, scale, slopes, level, tilt = torch.empty(5, width, device=values.device)
        wanted = (shift, scale, slopes, level, tilt)
        known = (factor, centre, inverse, size)
        block = (32, ROWS_SETTLED)
        _launch("settle_sums", (tiles, 1), block, sums, *known, *wanted, chunks, width, int(ctx.normal))
        if ctx.normal:
            given = (slope, mask, key, level, tilt)
            threads = (_threads(width // 4), 1)
            _launch(
                "activate_gradient", (height, 1), threads, *layer, *given, gradient, out, width, *ctx.dropout
            )
        return out, scale, shift, slopes.sum().reshape(slope.shape), None, None, None, None, None


def _threads(width: int) -> int:
    return min(256, max(1, -(-width // 32)) * 32)


class Unit(torch.autograd.Function):
    """Rows divided by their length."""

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:  # noqa: D102
        values = values.contiguous()
        height, width = values.shape
        out, norms = torch.empty_like(values), torch.empty(height, device=values.device)
        _launch("unit", (height, 1), (_threads(width), 1), values, out, norms, width)
        ctx.save_for_backward(out, norms)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:  # noqa: D102
        unit, norms = ctx.saved_tensors
        height, width = unit.shape
        out = torch.empty_like(unit)
        given = (unit, norms, gradient.contiguous())
        _launch("unit_gradient", (height, 1), (_threads(width), 1), *given, out, width)
        return out


class Contrast(torch.autograd.Function):
    """The single-pass contrastive loss of similarities, its positives and negatives chosen on the way.

    Takes the similarities of anchors with the entries of a pool, the nodes of both, how many entries count,
    a key for the negatives, whether anchors count as entries do, the numbers of positives and negatives,
    whether a node may be its own positive, and the weight of the repelling term.
    """

    @staticmethod
    def forward(  # noqa: D102
        ctx: Any,
        similarities: Tensor,
        anchors: Tensor,
        pool: Tensor,
        size: Tensor,
        key: Tensor,
        anchored: bool,
        positives: int,
        negatives: int,
        own_positive: bool,
        negative_weight: float,
    ) -> Tensor:
        height, width = similarities.shape
        gradient = torch.empty_like(similarities)
        losses = torch.empty(height, device=similarities.device)
        given = (similarities.contiguous(), anchors, pool, size, key, gradient, losses)
        numbers = (width, positives, negatives, int(own_positive), int(anchored), float(negative_weight))
        _launch("contrast", (height, 1), (256, 1), *given, *numbers, shared=8 * width)
        ctx.save_for_backward(gradient)
        return losses.sum()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # noqa: D102
        (slopes,) = ctx.saved_tensors
        return slopes * gradient, *[None] * 9
