"""Layers over the rows that a step needs, by operations whose shapes are the same at every step.

The pool of a step has another size each time, and so have the neighbours its encoder reads. Here both are
marked in arrays of fixed length instead of being listed: an accelerator can then record a step and replay it.
On CUDA the kernels skip what is not marked; elsewhere plain operations give the same numbers.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from spgcl.engine.activations import activate, follow
from spgcl.engine.kernels import step as kernels
from spgcl.engine.tensors import SparseMatrix


@dataclass(frozen=True, eq=False)
class Level:
    """The rows of one layer's output.

    Attributes:
        nodes: Node of every row, int32; -1 where a row is not needed.
        places: Row of every node, int32; -1 where it has none.
        mask: Which rows are needed, as bytes.
        size: How many rows are needed.
    """

    nodes: Tensor
    places: Tensor
    mask: Tensor
    size: Tensor

    @classmethod
    def everything(cls, num_nodes: int, device: torch.device) -> "Level":
        """A row for every node."""
        nodes = torch.arange(num_nodes, dtype=torch.int32, device=device)
        mask = torch.ones(num_nodes, dtype=torch.uint8, device=device)
        return cls(nodes, nodes, mask, torch.full((), num_nodes, device=device))

    @classmethod
    def of(cls, nodes: Tensor, num_nodes: int) -> tuple["Level", Tensor]:
        """A row for every distinct node of a list, ascending; and the row of every node of the list."""
        device, length = nodes.device, min(len(nodes), num_nodes)
        present = torch.zeros(num_nodes, dtype=torch.bool, device=device).scatter_(0, nodes, True)
        if kernels.serve(present):
            level = cls(*kernels.place(present, length))
            return level, level.places[nodes].long()
        ranks = present.cumsum(0) - 1
        numbers = torch.arange(num_nodes, device=device)
        # Absent nodes are all written to one place behind the rows.
        rows = torch.full((length + 1,), -1, device=device)
        rows = rows.scatter_(0, torch.where(present, ranks, length), numbers)[:length]
        mask = torch.arange(length, device=device) <= ranks[-1]
        chosen = torch.where(mask, rows, -1).int()
        places = torch.where(present, ranks, -1).int()
        return cls(chosen, places, mask.to(torch.uint8), ranks[-1] + 1), ranks[nodes]

    def read(self, adjacency: SparseMatrix) -> "Level":
        """What a propagation to this level reads, as rows among those of all nodes."""
        if kernels.serve(self.nodes):
            nodes, mask, size = kernels.mark(
                adjacency.pieces, adjacency.columns, self.places, adjacency.num_columns
            )
            return Level(nodes, nodes, mask, size)
        present = (self.places >= 0).to(adjacency.values.dtype)[:, None]
        mask = (adjacency.transposed @ present).reshape(-1).sign().to(torch.uint8)
        numbers = torch.arange(adjacency.num_columns, dtype=torch.int32, device=self.nodes.device)
        nodes = torch.where(mask.bool(), numbers, -1)
        return Level(nodes, nodes, mask, mask.sum())


def propagated(adjacency: SparseMatrix, dense: Tensor, level: Level, inputs: Level) -> Tensor:
    """Adjacency times a matrix with the rows of `inputs`, for the rows of `level`; others are zero."""
    if kernels.serve(dense):
        result: Tensor = _Propagation.apply(adjacency, dense, level, inputs)  # type: ignore[no-untyped-call]
        return result
    everywhere = dense[inputs.places.long().clamp(min=0)] * (inputs.places >= 0)[:, None]
    return (adjacency @ everywhere)[level.nodes.long().clamp(min=0)] * level.mask[:, None]


class _Propagation(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, adjacency: SparseMatrix, dense: Tensor, level: Level, inputs: Level) -> Tensor:
        ctx.adjacency, ctx.level, ctx.inputs = adjacency, level, inputs
        return _times(adjacency, dense, level.nodes, inputs.places)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor, None, None]:
        back = _times(ctx.adjacency.transposed, gradient, ctx.inputs.nodes, ctx.level.places)
        return None, back, None, None


def _times(matrix: SparseMatrix, dense: Tensor, nodes: Tensor, places: Tensor) -> Tensor:
    if len(nodes) == matrix.num_rows:
        return kernels.all_rows(matrix.pieces, matrix.columns, matrix.values, dense, nodes, places)
    entries = (matrix.rows, matrix.columns, matrix.values)
    return kernels.chosen_rows(*entries, dense, nodes, places, longest=matrix.longest)


def activated(
    values: Tensor,
    level: Level,
    *,
    bias: Tensor,
    norm: nn.BatchNorm1d | None,
    activation: nn.Module,
    dropout: float,
    keys: kernels.Keys,
) -> Tensor:
    """Bias, batch norm over the needed rows, activation and dropout; rows that are not needed are zero."""
    if kernels.serve(values):
        return _fused(values, level, bias, norm, activation, dropout, keys)
    return _plain(values, level, bias, norm, activation, dropout, keys)


def _fused(
    values: Tensor,
    level: Level,
    bias: Tensor,
    norm: nn.BatchNorm1d | None,
    activation: nn.Module,
    dropout: float,
    keys: kernels.Keys,
) -> Tensor:
    device, width = values.device, len(bias)
    scale, shift, normals = kernels.constant(width, 1.0, device), bias, None
    if norm is not None:
        normals = kernels.normal(values.detach(), level.mask, level.size, bias.detach(), norm)
        scale = scale if norm.weight is None else norm.weight
        shift = kernels.constant(width, 0.0, device) if norm.bias is None else norm.bias
    slope = activation.weight if isinstance(activation, nn.PReLU) else kernels.constant(1, 0.0, device)
    key = keys.take() if dropout else kernels.constant(2, 0.0, device)
    result: Tensor = kernels.Activate.apply(  # type: ignore[no-untyped-call]
        values, scale, shift, slope, level.mask, level.size, key, dropout, normals
    )
    return result


def unit_rows(values: Tensor) -> Tensor:
    """Rows divided by their length."""
    if kernels.serve(values):
        result: Tensor = kernels.Unit.apply(values)  # type: ignore[no-untyped-call]
        return result
    return nn.functional.normalize(values, dim=1)


def _plain(
    values: Tensor,
    level: Level,
    bias: Tensor,
    norm: nn.BatchNorm1d | None,
    activation: nn.Module,
    dropout: float,
    keys: kernels.Keys,
) -> Tensor:
    if norm is None:
        values = values + bias
    else:
        mean, variance = _moments(values, level.mask)
        follow(norm, mean + bias, variance, level.size)
        norm.num_batches_tracked.add_(1)  # type: ignore[union-attr]
        values = (values - mean) * (variance + norm.eps).rsqrt()
        if norm.weight is not None:
            values = values * norm.weight + norm.bias
    return activate(values, activation, dropout, keys.generator) * level.mask[:, None]


def _moments(values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    rows = mask.to(values.dtype)[:, None]
    mean = (values * rows).sum(0) / rows.sum()
    return mean, ((values - mean).square() * rows).sum(0) / rows.sum()
