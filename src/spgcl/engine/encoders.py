"""Graph encoders, evaluated for the requested rows only: GCN, GAT, GIN, GraphSAGE, MLP."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Literal, TypeGuard

import torch
from torch import Tensor, nn

from spgcl.engine.activations import (
    activate,
    activate_in_place,
    dropout_factors,
    folded,
    normalise,
    normalised_product,
)
from spgcl.engine.convolutions import MESSAGE_PASSING, Block, Convolution, EncoderKind, convolve, layer_of
from spgcl.engine.sampling import sampled_rows
from spgcl.engine.tensors import GraphTensors, SparseMatrix
from spgcl.errors import InputError

Activation = Literal["prelu", "relu"]
BatchNorm = Literal["none", "plain", "affine"]

MAX_LAYERS = 3
# Rows per block when message-passing layers embed a whole graph: messages take one row per edge.
ROWS_PER_BLOCK = 4096
# On CPU the first layer is computed for a few columns at a time. With sparse features, the weights of a slice
# then stay in the cache of a core, this many floats; dense features need wide slices.
CACHED_FLOATS = 2**18
LEAST_COLUMNS = 32
DENSE_COLUMNS = 256
# Batch norm of some rows uses the covariance of all rows if these are this many times as many as the columns
# and the requested rows together.
MANY_ROWS = 2


class Encoder(nn.Module):
    """Layers of convolution, batch norm, activation and dropout; the embedding is the last activation.

    The activation is one module shared by all layers, and dropout follows the last layer too, as in the
    published code.

    Args:
        num_features: Width of the input.
        kind: Which convolution.
        layers: How many, 1 to 3.
        hidden: Width of the embedding and, unless widened, of every layer.
        activation: After every layer.
        dropout: Fraction of activations dropped in training.
        batch_norm: None, without learnable scale and shift, or with them.
        fan_out: Entries of a row that a layer reads in training, drawn at random; 0 reads all.
        widening: How many times as wide as the embedding the layers before the last are.
    """

    def __init__(
        self,
        num_features: int,
        *,
        kind: EncoderKind = "gcn",
        layers: int = 2,
        hidden: int,
        activation: Activation = "prelu",
        dropout: float = 0.0,
        batch_norm: BatchNorm,
        fan_out: int = 0,
        widening: int = 1,
    ) -> None:
        super().__init__()
        if not 1 <= layers <= MAX_LAYERS:
            raise InputError(f"layers is {layers}; encoders have 1 to {MAX_LAYERS}")
        widths = [num_features, *[widening * hidden] * (layers - 1), hidden]
        self.kind = kind
        self.dropout = dropout
        self.fan_out = fan_out
        layers_of_kind = [layer_of(kind, *pair) for pair in pairwise(widths)]
        if batch_norm != "none":
            # Batch norm cancels a bias. Its gradient would be rounding noise, which Adam turns into full
            # steps, and the running mean would lag behind them.
            for layer in layers_of_kind:
                layer.last_bias.requires_grad_(False)
        self.convolutions = nn.ModuleList(layers_of_kind)
        self.norms = nn.ModuleList(
            nn.BatchNorm1d(width, affine=batch_norm == "affine")
            for width in widths[1:]
            if batch_norm != "none"
        )
        self.activation = activation_module(activation)

    def forward(
        self,
        graph: GraphTensors,
        rows: Tensor | None,
        generator: torch.Generator | None,
        *,
        every_row: bool = False,
    ) -> Tensor:
        """Embeddings of distinct `rows` (all when None), shape (rows, hidden).

        In training, batch norm takes its statistics from the rows that a layer is evaluated for: those that
        `rows` need or, with `every_row`, all. Dropout draws from `generator`.
        """
        if self.kind in MESSAGE_PASSING and graph.weighted:
            raise InputError(f"the {self.kind} encoder cannot use edge weights; take gcn or drop the weights")
        # Dense features are propagated once for all steps, so that a GCN skips its first propagation.
        smoothed = self.kind == "gcn" and isinstance(graph.features, Tensor)
        blocks = self._blocks(graph, None if every_row else rows, generator, skip_first=smoothed)
        hidden = graph.smoothed if smoothed else graph.features
        if blocks[0].inputs is not None:
            inputs = blocks[0].inputs
            hidden = hidden.select(inputs) if isinstance(hidden, SparseMatrix) else _in_full(hidden[inputs])
        if self.training:
            for norm in self.norms:
                norm.num_batches_tracked.add_(1)  # type: ignore[operator]
        kept = [None] * (len(blocks) - 1) + [rows if every_row else None]
        if self.kind not in MESSAGE_PASSING:
            return self._convolved(hidden, blocks, kept, generator)
        for index, (layer, block) in enumerate(zip(self.convolutions, blocks, strict=True)):
            hidden = self._activated(layer(hidden, block), index, kept[index], generator)
        assert isinstance(hidden, Tensor)
        return hidden

    def _convolved(
        self,
        hidden: Tensor | SparseMatrix,
        blocks: list[Block],
        kept: list[Tensor | None],
        generator: torch.Generator | None,
    ) -> Tensor:
        """Convolutions, each followed by the propagation that the next one begins with.

        Between two products with weights, columns do not depend on each other: the first layer is computed
        slice by slice, so that all between the products stays in the cache.
        """
        matrix, propagations = blocks[0].matrix, [*(block.matrix for block in blocks[1:]), None]
        for index, (rows, propagation) in enumerate(zip(kept, propagations, strict=True)):
            if index and rows is not None and self._many(hidden, rows):
                layer, norm = self.convolutions[index], self.norms[index]
                assert isinstance(layer, Convolution) and isinstance(norm, nn.BatchNorm1d)
                values = normalised_product(hidden, layer.weight, layer.bias, norm, rows)
                return activate(values, self.activation, self.dropout, generator)
            parts = [
                values if propagation is None else propagation @ values
                for values in self._slices(index, hidden, matrix, rows, generator)
            ]
            hidden, matrix = parts[0] if len(parts) == 1 else torch.cat(parts, dim=1), None
        assert isinstance(hidden, Tensor)
        return hidden

    def _slices(
        self,
        index: int,
        hidden: Tensor | SparseMatrix,
        matrix: SparseMatrix | None,
        rows: Tensor | None,
        generator: torch.Generator | None,
    ) -> Iterator[Tensor]:
        """The output of a layer, some columns at a time; the first layer has inputs without gradient."""
        layer = self.convolutions[index]
        assert isinstance(layer, Convolution)
        weights: tuple[Tensor, Tensor] = layer.weight, layer.bias
        # Without gradients nothing needs the values before an activation again.
        in_place = not self.training and not torch.is_grad_enabled() and rows is None
        if in_place and len(self.norms):
            weights = folded(*weights, self.norms[index])  # type: ignore[arg-type]
        # Batch norm in training cancels a bias. On CPU, where adding it is a pass over memory, only the
        # running mean gets it.
        cancelled = self.training and len(self.norms) > 0 and layer.bias.device.type == "cpu"
        width = layer.weight.shape[1]
        width = width if index else self._slice_width(hidden, width)
        slices = zip(*(torch.split(part, width, dim=-1) for part in weights), strict=True)
        for number, (weight, bias) in enumerate(slices):
            values = convolve(hidden, matrix, weight, None if cancelled else bias)
            if in_place:
                yield activate_in_place(values, self.activation)
            else:
                columns = slice(number * width, (number + 1) * width)
                yield self._activated(values, index, rows, generator, columns, bias if cancelled else None)

    def _many(self, hidden: Tensor | SparseMatrix, rows: Tensor) -> TypeGuard[Tensor]:
        """Whether there are so many rows that batch norm of a few is faster by the covariance of all."""
        if not (self.training and len(self.norms) and isinstance(hidden, Tensor)):
            return False
        return hidden.device.type == "cpu" and len(hidden) >= MANY_ROWS * (hidden.shape[1] + len(rows))

    @staticmethod
    def _slice_width(features: Tensor | SparseMatrix, width: int) -> int:
        """Columns of the first layer, `width` in all, that are computed together."""
        if isinstance(features, Tensor):
            return DENSE_COLUMNS if features.device.type == "cpu" else width
        if features.values.device.type != "cpu":
            return width
        return max(1, CACHED_FLOATS // features.shape[1] // LEAST_COLUMNS) * LEAST_COLUMNS

    def _activated(
        self,
        values: Tensor,
        index: int,
        kept: Tensor | None,
        generator: torch.Generator | None,
        columns: slice = slice(None),
        bias: Tensor | None = None,
    ) -> Tensor:
        """Batch norm, activation and dropout of some columns of a layer; of all rows or of those to keep.

        A bias is one that was not added to the values, because batch norm in training cancels it.
        """
        if len(self.norms):
            values = normalise(values, self.norms[index], columns, kept, bias)  # type: ignore[arg-type]
        elif kept is not None:
            values = values.index_select(0, kept)
        return activate(values, self.activation, self.dropout, generator if self.training else None)

    @torch.no_grad()
    def embed(self, graph: GraphTensors) -> Tensor:
        """Embeddings of all nodes, without dropout and with the running statistics of batch norm."""
        training = self.training
        self.eval()
        if self.kind in MESSAGE_PASSING:
            blocks = torch.split(torch.arange(graph.num_nodes, device=graph.device), ROWS_PER_BLOCK)
            embeddings = torch.cat([self(graph, rows, None) for rows in blocks])
        else:
            embeddings = self(graph, None, None)
        self.train(training)
        return embeddings

    @torch.no_grad()
    def layer_output(self, index: int, rows: Tensor) -> Tensor:
        """A layer of a GCN or an MLP as `embed` evaluates it, from its inputs after propagation."""
        layer = self.convolutions[index]
        assert isinstance(layer, Convolution)
        weights: tuple[Tensor, Tensor] = layer.weight, layer.bias
        if len(self.norms):
            weights = folded(*weights, self.norms[index])  # type: ignore[arg-type]
        return activate_in_place(convolve(rows, None, *weights), self.activation)

    def weight_norms(self) -> list[float]:
        """Sum of the squared weights of every layer."""
        return [
            float(sum(weight.detach().square().sum() for weight in layer.parameters() if weight.ndim == 2))
            for layer in self.convolutions
        ]

    def _blocks(
        self,
        graph: GraphTensors,
        rows: Tensor | None,
        generator: torch.Generator | None,
        *,
        skip_first: bool,
    ) -> list[Block]:
        blocks: list[Block] = []
        for index in reversed(range(len(self.convolutions))):
            if self.kind == "mlp" or (skip_first and index == 0):
                blocks.append(Block(None, inputs=rows))
            elif rows is None:
                blocks.append(Block(graph.adjacency))
            else:
                if self.fan_out and self.training and generator is not None:
                    chosen = sampled_rows(graph.adjacency, rows, self.fan_out, generator)
                else:
                    chosen = graph.adjacency.select(rows)
                matrix, inputs = chosen.restrict()
                blocks.append(Block(matrix, inputs, outputs=torch.searchsorted(inputs, rows)))
                rows = inputs
        return blocks[::-1]


def activation_module(name: Activation) -> nn.Module:
    """A new module of the named activation."""
    return nn.PReLU() if name == "prelu" else nn.ReLU()


def drop(values: Tensor, rate: float, generator: torch.Generator) -> Tensor:
    """Dropout whose randomness arrives by argument."""
    if rate == 0:
        return values
    return values * dropout_factors(values.shape, rate, generator, values.dtype)


def _in_full(rows: Tensor) -> Tensor:
    """Rows to compute with: those on disk may be float16."""
    return rows.float() if rows.dtype == torch.float16 else rows
