"""Single layers of graph encoders, each from the rows it reads to the rows it computes."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from spgcl.engine.tensors import SparseMatrix

EncoderKind = Literal["gcn", "gat", "gin", "sage", "mlp"]

MESSAGE_PASSING = ("gat", "gin", "sage")


@dataclass(frozen=True, eq=False)
class Block:
    """The part of the graph that one layer uses: from the rows it reads to the rows it computes.

    Attributes:
        matrix: Normalised adjacency, shape (outputs, inputs); None if the layer does not propagate.
        inputs: Node of every input row; None for all nodes.
        outputs: Index of every output node among the input rows; None if they are the same.
    """

    matrix: SparseMatrix | None
    inputs: Tensor | None = None
    outputs: Tensor | None = None


class Convolution(nn.Module):
    """Kipf and Welling's convolution: normalised adjacency, weights, bias; a linear layer without edges."""

    def __init__(self, width: int, out_width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width, out_width))
        self.bias = nn.Parameter(torch.zeros(out_width))
        nn.init.xavier_uniform_(self.weight)

    @property
    def last_bias(self) -> nn.Parameter:
        """The bias that is added to every output row."""
        return self.bias

    def forward(self, inputs: Tensor | SparseMatrix, block: Block) -> Tensor:
        """Propagate, then multiply; sparse features are multiplied first, while they are sparse."""
        return convolve(inputs, block.matrix, self.weight, self.bias)


def convolve(
    inputs: Tensor | SparseMatrix, matrix: SparseMatrix | None, weight: Tensor, bias: Tensor | None
) -> Tensor:
    """A convolution with given weights, or with some columns of them; no bias if None."""
    if isinstance(inputs, SparseMatrix):
        product = inputs @ weight
        product = product if matrix is None else matrix @ product
        return product if bias is None else product.add_(bias)
    rows = inputs if matrix is None else matrix @ inputs
    return rows @ weight if bias is None else torch.addmm(bias, rows, weight)


class MessageLayer(nn.Module):
    """A message-passing layer of PyTorch Geometric: attention, isomorphism, or sample and aggregate."""

    def __init__(self, kind: EncoderKind, width: int, out_width: int) -> None:
        super().__init__()
        from torch_geometric import nn as pyg

        self.kind = kind
        if kind == "gat":
            self.convolution: nn.Module = pyg.GATConv(width, out_width, add_self_loops=False)
        elif kind == "sage":
            self.convolution = pyg.SAGEConv(width, out_width)
        else:
            inner = nn.Sequential(nn.Linear(width, out_width), nn.ReLU(), nn.Linear(out_width, out_width))
            self.convolution = pyg.GINConv(inner)

    @property
    def last_bias(self) -> nn.Parameter:
        """The bias that is added to every output row."""
        path = {"gat": "bias", "sage": "lin_l.bias", "gin": "nn.2.bias"}[self.kind]
        return self.convolution.get_parameter(path)

    def forward(self, inputs: Tensor | SparseMatrix, block: Block) -> Tensor:
        """Pass messages from input rows to output rows; only attention counts a node as its own neighbour."""
        rows = inputs.dense() if isinstance(inputs, SparseMatrix) else inputs
        assert block.matrix is not None
        sources, targets = block.matrix.columns.long(), block.matrix.row_of_entry.long()
        edges = torch.stack([sources, targets])
        if self.kind != "gat":
            edges = edges[:, sources != (targets if block.outputs is None else block.outputs[targets])]
        own = rows if block.outputs is None else rows[block.outputs]
        result: Tensor = self.convolution((rows, own), edges)
        return result


def layer_of(kind: EncoderKind, width: int, out_width: int) -> Convolution | MessageLayer:
    """A new layer of a kind."""
    if kind in MESSAGE_PASSING:
        return MessageLayer(kind, width, out_width)
    return Convolution(width, out_width)
