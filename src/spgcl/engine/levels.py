"""A GCN in fixed shapes on CUDA, so that a training step can be captured as a CUDA graph and replayed.

Every step needs different rows, and different numbers of them. They are marked in arrays of fixed length
instead of being listed, and the kernels skip all others.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from spgcl.engine.autograd import apply
from spgcl.engine.convolutions import Convolution
from spgcl.engine.encoders import Encoder
from spgcl.engine.kernels import layers, sparse
from spgcl.engine.tensors import GraphTensors, SparseMatrix


@dataclass(frozen=True, eq=False)
class Level:
    """The rows of one layer's output.

    Attributes:
        nodes: Node of every row, int32; -1 if the row is not needed.
        row_of_node: Row of every node, int32; -1 if it has none.
        mask: Which rows are needed, as bytes.
        size: How many rows are needed.
    """

    nodes: Tensor
    row_of_node: Tensor
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
        present = torch.zeros(num_nodes, dtype=torch.bool, device=nodes.device).scatter_(0, nodes, True)
        level = cls(*sparse.assign_rows(present, min(len(nodes), num_nodes)))
        return level, level.row_of_node[nodes].long()

    def inputs(self, adjacency: SparseMatrix) -> "Level":
        """The rows that a propagation to this level reads, among those of all nodes."""
        nodes, mask, size = sparse.mark_columns(
            adjacency.pattern.pieces, adjacency.columns, self.row_of_node, adjacency.shape[1]
        )
        return Level(nodes, nodes, mask, size)

    def select(self, rows: Tensor) -> Tensor:
        """Of rows for all nodes those of this level; rows that are not needed get any."""
        return rows.index_select(0, self.nodes.clamp(min=0))


def propagated(adjacency: SparseMatrix, dense: Tensor, level: Level, inputs: Level) -> Tensor:
    """Adjacency times a matrix with the rows of `inputs`, for the rows of `level`; others are zero."""
    return apply(_Propagation, adjacency, dense, level, inputs)


class _Propagation(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, adjacency: SparseMatrix, dense: Tensor, level: Level, inputs: Level) -> Tensor:
        ctx.adjacency, ctx.level, ctx.inputs = adjacency, level, inputs
        return _product(adjacency, dense, level.nodes, inputs.row_of_node)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor, None, None]:
        back = _product(ctx.adjacency.transposed, gradient, ctx.inputs.nodes, ctx.level.row_of_node)
        return None, back, None, None


def _product(matrix: SparseMatrix, dense: Tensor, chosen: Tensor, dense_rows: Tensor) -> Tensor:
    if len(chosen) == matrix.shape[0]:
        pieces = matrix.pattern.pieces
        return sparse.all_rows(pieces, matrix.columns, matrix.values, dense, chosen, dense_rows)
    entries = (matrix.rows, matrix.columns, matrix.values)
    return sparse.chosen_rows(*entries, dense, chosen, dense_rows, longest=matrix.pattern.longest)


def encode(encoder: Encoder, graph: GraphTensors, level: Level, keys: layers.Keys) -> Tensor:
    """Embeddings of the rows of a level by a GCN in training.

    The same numbers as `Encoder.forward` gives for those rows, except that dropout draws others.
    """
    levels = [level]
    for _ in encoder.convolutions[1:]:
        levels.insert(0, levels[0].inputs(graph.adjacency))
    hidden: Tensor | None = None
    for index, (convolution, after) in enumerate(zip(encoder.convolutions, levels, strict=True)):
        assert isinstance(convolution, Convolution)
        if hidden is None:
            values = _first_product(graph, convolution.weight, after)
        else:
            values = propagated(graph.adjacency, hidden, after, levels[index - 1]) @ convolution.weight
        hidden = layers.activated(
            values,
            after.mask,
            after.size,
            bias=convolution.bias,
            norm=encoder.norms[index] if len(encoder.norms) else None,  # type: ignore[arg-type]
            activation=encoder.activation,
            dropout=encoder.dropout,
            keys=keys,
        )
    assert hidden is not None
    return hidden


def _first_product(graph: GraphTensors, weight: Tensor, level: Level) -> Tensor:
    if isinstance(graph.features, SparseMatrix):
        inputs = level.inputs(graph.adjacency)
        all_features = Level.everything(len(weight), graph.device)
        products = propagated(graph.features, weight, inputs, all_features)
        return propagated(graph.adjacency, products, level, inputs)
    smoothed = graph.padded_smoothed
    weight = nn.functional.pad(weight, (0, 0, 0, smoothed.shape[1] - len(weight)))
    whole = len(level.nodes) == graph.num_nodes
    return (smoothed if whole else level.select(smoothed)) @ weight
