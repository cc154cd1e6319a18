"""Graph encoders, evaluated for the rows that are asked for and no others: GCN, GAT, GIN, GraphSAGE, MLP."""

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
from spgcl.engine.kernels.step import Keys
from spgcl.engine.levels import Level, activated, propagated
from spgcl.engine.sampling import sampled_rows
from spgcl.engine.tensors import GraphTensors, SparseMatrix
from spgcl.errors import InputError

Activation = Literal["prelu", "relu"]
BatchNorm = Literal["none", "plain", "affine"]

MAX_LAYERS = 3
# Rows a block when message-passing layers embed a whole graph: their messages take a row an edge.
ROWS_A_BLOCK = 4096
# A first layer is computed on CPU for a few columns at a time. Those of its weights that sparse features are
# multiplied by then stay in a core's cache, this many floats; dense features need wide slices to be quick.
CACHED_FLOATS = 2**18
LEAST_COLUMNS = 32
DENSE_COLUMNS = 256
# Batch norm of some rows is computed by the covariance of all, where these are so many times the columns and
# the rows that are asked for.
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
        dropout: Share of activations dropped in training.
        batch_norm: Without, without learnable scale and shift, or with them.
        fan_out: Entries of a row that a layer reads in training, drawn at random; 0 reads all.
        widening: How many times as wide as the embedding the layers before the last are.
    """

    def __init__(
        self,
        num_features: int,
        *,
        kind: EncoderKind,
        layers: int,
        hidden: int,
        activation: Activation,
        dropout: float,
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
            # Batch norm takes a bias away again. Its gradient would be rounding alone, which Adam makes full
            # steps of, and the running mean lags behind them.
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
        # Dense features are propagated once for all steps, which spares a GCN its first propagation.
        smoothed = self.kind == "gcn" and isinstance(graph.features, Tensor)
        blocks = self._blocks(graph, None if every_row else rows, generator, skip_first=smoothed)
        hidden = graph.smoothed if smoothed else graph.features
        if blocks[0].inputs is not None:
            inputs = blocks[0].inputs
            hidden = hidden.select(inputs) if isinstance(hidden, SparseMatrix) else hidden[inputs]
        if self.training:
            for norm in self.norms:
                norm.num_batches_tracked.add_(1)  # type: ignore[operator]
        kept = [None] * (len(blocks) - 1) + [rows if every_row else None]
        if self.kind not in MESSAGE_PASSING:
            return self._convolved(hidden, blocks, kept, generator)
        for place, (layer, block) in enumerate(zip(self.convolutions, blocks, strict=True)):
            hidden = self._activated(layer(hidden, block), place, kept[place], generator)
        assert isinstance(hidden, Tensor)
        return hidden

    def _convolved(
        self,
        hidden: Tensor | SparseMatrix,
        blocks: list[Block],
        kept: list[Tensor | None],
        generator: torch.Generator | None,
    ) -> Tensor:
        """Convolutions, each with what the next one propagates of it.

        Between two products with weights no column depends on another: the first layer, which reads nothing
        that needs a gradient, is computed slice by slice, and what lies between the products in the cache.
        """
        own, matrices = blocks[0].matrix, [block.matrix for block in blocks[1:]]
        # Only training needs what lies between a product and its activation once more.
        settled = not self.training and not torch.is_grad_enabled() and kept[-1] is None
        # Batch norm in training takes a bias away again. On CPU, where adding one is a pass over memory, it
        # is left to the running mean.
        on_cpu = next(self.parameters()).device.type == "cpu"
        biased = not (self.training and len(self.norms) and on_cpu)
        for place, (layer, following) in enumerate(zip(self.convolutions, [*matrices, None], strict=True)):
            assert isinstance(layer, Convolution)
            rows = kept[place]
            if place and rows is not None and self._many(hidden, rows):
                norm: nn.BatchNorm1d = self.norms[place]  # type: ignore[assignment]
                values = normalised_product(hidden, layer.weight, layer.bias, norm, rows)
                return activate(values, self.activation, self.dropout, generator)
            width = layer.weight.shape[1]
            if not place:
                width = self._slice_width(hidden, width)
            parts: list[Tensor] = []
            weights: tuple[Tensor, Tensor] = layer.weight, layer.bias
            if settled and len(self.norms):
                weights = folded(*weights, self.norms[place])  # type: ignore[arg-type]
            for weight, bias in zip(*(torch.split(part, width, dim=-1) for part in weights), strict=True):
                values = convolve(hidden, own, weight, bias if biased else None)
                columns = slice(len(parts) * width, (len(parts) + 1) * width)
                if settled:
                    values = activate_in_place(values, self.activation)
                else:
                    values = self._activated(
                        values, place, rows, generator, columns, bias=None if biased else bias
                    )
                parts.append(values if following is None else following @ values)
            hidden, own = parts[0] if len(parts) == 1 else torch.cat(parts, dim=1), None
        assert isinstance(hidden, Tensor)
        return hidden

    def _many(self, hidden: Tensor | SparseMatrix, rows: Tensor) -> TypeGuard[Tensor]:
        """Whether there are so many rows that batch norm of a few is quicker by the covariance of all."""
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
        return max(1, CACHED_FLOATS // features.num_columns // LEAST_COLUMNS) * LEAST_COLUMNS

    def _activated(
        self,
        values: Tensor,
        place: int,
        kept: Tensor | None,
        generator: torch.Generator | None,
        columns: slice = slice(None),
        bias: Tensor | None = None,
    ) -> Tensor:
        """Batch norm, activation and dropout of some columns of a layer; only some rows of it, if asked.

        A bias that the values do not have yet is one for batch norm in training.
        """
        if len(self.norms):
            values = normalise(values, self.norms[place], columns, kept, bias)  # type: ignore[arg-type]
        elif kept is not None:
            values = values.index_select(0, kept)
        return activate(values, self.activation, self.dropout, generator if self.training else None)

    def padded(self, graph: GraphTensors, level: Level, keys: Keys) -> Tensor:
        """Embeddings of the rows of a level, for training: GCN only, by operations of fixed shapes.

        The same numbers as `forward` gives for those rows, except that dropout draws others.
        """
        levels = [level]
        for _ in range(len(self.convolutions) - 1):
            levels.append(levels[-1].read(graph.adjacency))
        levels.reverse()
        hidden: Tensor | None = None
        for place, (convolution, after) in enumerate(zip(self.convolutions, levels, strict=True)):
            assert isinstance(convolution, Convolution)
            if hidden is None:
                values = _first_product(graph, convolution.weight, after)
            else:
                values = propagated(graph.adjacency, hidden, after, levels[place - 1]) @ convolution.weight
            hidden = activated(
                values,
                after,
                bias=convolution.bias,
                norm=self.norms[place] if len(self.norms) else None,  # type: ignore[arg-type]
                activation=self.activation,
                dropout=self.dropout,
                keys=keys,
            )
        assert hidden is not None
        return hidden

    @torch.no_grad()
    def embed(self, graph: GraphTensors) -> Tensor:
        """Embeddings of all nodes, without dropout and with the running statistics of batch norm."""
        training = self.training
        self.eval()
        if self.kind in MESSAGE_PASSING:
            blocks = torch.split(torch.arange(graph.num_nodes, device=graph.device), ROWS_A_BLOCK)
            embeddings = torch.cat([self(graph, rows, None) for rows in blocks])
        else:
            embeddings = self(graph, None, None)
        self.train(training)
        return embeddings

    def weight_norms(self) -> list[float]:
        """Sum of the squared column norms of every layer's weights, the quantity in the paper's bound."""
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
        for place in reversed(range(len(self.convolutions))):
            if self.kind == "mlp" or (skip_first and place == 0):
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


def _first_product(graph: GraphTensors, weight: Tensor, level: Level) -> Tensor:
    if isinstance(graph.features, SparseMatrix):
        read = level.read(graph.adjacency)
        words = Level.everything(len(weight), graph.device)
        return propagated(graph.adjacency, propagated(graph.features, weight, read, words), level, read)
    smoothed = graph.padded_smoothed
    weight = nn.functional.pad(weight, (0, 0, 0, smoothed.shape[1] - len(weight)))
    whole = len(level.nodes) == graph.num_nodes
    return (smoothed if whole else smoothed[level.nodes.long().clamp(min=0)]) @ weight


def activation_module(name: Activation) -> nn.Module:
    """A fresh module of the named activation."""
    return nn.PReLU() if name == "prelu" else nn.ReLU()


def drop(values: Tensor, rate: float, generator: torch.Generator) -> Tensor:
    """Dropout whose randomness arrives by argument."""
    if rate == 0:
        return values
    return values * dropout_factors(values.shape, rate, generator, values.dtype)
