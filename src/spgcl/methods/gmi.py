"""GMI: embeddings informative of a node's features, its neighbours' and its edges (Peng et al., WWW 2020)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor, nn
from torch.nn.functional import softplus

from spgcl.engine.all_pairs import SOFTPLUS_PRODUCTS, summed_softplus
from spgcl.engine.autograd import apply
from spgcl.engine.convolutions import Convolution
from spgcl.engine.encoders import Activation, BatchNorm, Encoder
from spgcl.engine.pair_products import entry_products, pair_products
from spgcl.engine.tensors import SparseMatrix
from spgcl.graph import Graph
from spgcl.graph.propagate import inverse
from spgcl.methods.method import Method, Prepared
from spgcl.methods.parts.discriminators import Bilinear
from spgcl.methods.parts.pools import sample_nodes
from spgcl.methods.ranges import Count, Factor, Positive, Size, Width

# Products in a block: 64 MiB of float32.
BLOCK_NUMBERS = 2**24


@dataclass(eq=False, kw_only=True)
class PreparedGMI(Prepared):
    """A graph and the means over its neighbourhoods.

    Attributes:
        means: Row i averages over the neighbours of node i, itself left out; empty for an isolated node.
        features: Means of dense features, computed once; None if features are sparse.
    """

    means: SparseMatrix
    features: Tensor | None


class GMI(Method[PreparedGMI]):
    """Maximise information on own features, neighbours' features and the adjacency (GMI-mean).

    Args:
        negatives: Random other nodes that every node is contrasted with.
        own_weight: Weight of the term of a node's own features (alpha).
        neighbour_weight: Weight of the term of its neighbours' features (beta).
        structure_weight: Weight of the term of the adjacency (gamma).
        rebuilt_rows: Rows of the adjacency, drawn at every step, whose zeros count; 0 takes all.
    """

    static = True
    fewer_pairs = "rebuilt_rows=1000"

    def __init__(
        self,
        num_features: int,
        *,
        layers: Factor = 1,
        hidden: Width = 512,
        activation: Activation = "relu",
        batch_norm: BatchNorm = "plain",
        normalise_features: bool = True,
        negatives: Size = 5,
        own_weight: float = 1.0,
        neighbour_weight: float = 0.2,
        structure_weight: float = 0.0,
        rebuilt_rows: int = 0,
        steps: Count = 500,
        learning_rate: Positive = 3e-4,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(steps, learning_rate, weight_decay, normalise_features)
        self.encoder = Encoder(
            num_features, hidden=hidden, layers=layers, activation=activation, batch_norm=batch_norm
        )
        self.own = Bilinear(num_features, hidden)
        self.neighbour = Bilinear(hidden, hidden)
        self.neighbour_activation = nn.PReLU()
        self.negatives, self.rebuilt_rows = negatives, rebuilt_rows
        self.own_weight, self.neighbour_weight = own_weight, neighbour_weight
        self.structure_weight = structure_weight
        self.products_per_pair = SOFTPLUS_PRODUCTS * hidden if structure_weight and not rebuilt_rows else 0.0

    def prepare(self, graph: Graph, device: torch.device, supervision: Any = None) -> PreparedGMI:
        """Average over neighbourhoods."""
        tensors = self.on_device(graph, device)
        scale = inverse(graph.adjacency.sum(axis=1, dtype=np.float64)).astype(np.float32)
        means = SparseMatrix.of(sparse.csr_array(sparse.diags_array(scale) @ graph.adjacency), device)
        features = means @ tensors.features if isinstance(tensors.features, Tensor) else None
        return PreparedGMI(tensors, means=means, features=features)

    def is_static(self, prepared: PreparedGMI) -> bool:
        """Whether products are kernels of fixed shapes, as on CUDA, and no rows are drawn."""
        return super().is_static(prepared) and prepared.means.capturable and not self.rebuilt_rows

    def loss(self, prepared: PreparedGMI, step: int, generator: torch.Generator) -> Tensor:
        """The three terms of the paper's objective, weighted."""
        graph = prepared.graph
        hidden = self.encoder(graph, None, generator)
        own = self._term(self.own, graph.features, hidden, generator)
        neighbour = self._term(self.neighbour, hidden, self._of_neighbours(prepared), generator)
        total = self.own_weight * own + self.neighbour_weight * neighbour
        # All pairs of nodes are most of the work.
        if not self.structure_weight:
            return total
        rows = sample_nodes(graph.num_nodes, self.rebuilt_rows, generator) if self.rebuilt_rows else None
        structure = adjacency_loss(hidden, graph.adjacency, rows)
        return total + self.structure_weight * structure

    def _term(
        self, pairing: Bilinear, rows: Tensor | SparseMatrix, others: Tensor, generator: torch.Generator
    ) -> Tensor:
        """Contrast `rows` with `others` of the same node against those of other nodes."""
        projected = rows @ pairing.weight
        drawn = other_nodes(len(others), self.negatives, generator)
        scores = [
            (projected * others).sum(dim=1),
            *(pair_products(projected, others, nodes) for nodes in drawn),
        ]
        positive, *negative = (torch.sigmoid(score + pairing.bias) for score in scores)
        return jensen_shannon(positive, torch.stack(negative))

    def _of_neighbours(self, prepared: PreparedGMI) -> Tensor:
        """Means of the neighbours' features under the first layer's weights, activated."""
        first = self.encoder.convolutions[0]
        assert isinstance(first, Convolution)
        if prepared.features is not None:
            mixed = prepared.features @ first.weight
        else:
            mixed = prepared.means @ (prepared.graph.features @ first.weight)
        activated: Tensor = self.neighbour_activation(mixed)
        return activated


def other_nodes(num_nodes: int, count: int, generator: torch.Generator) -> Tensor:
    """For every node `count` draws, uniform over the other nodes, shape (count, num_nodes)."""
    drawn = torch.randint(num_nodes - 1, (count, num_nodes), generator=generator, device=generator.device)
    return drawn + (drawn >= torch.arange(num_nodes, device=generator.device))


def jensen_shannon(positive: Tensor, negative: Tensor) -> Tensor:
    """The Jensen-Shannon estimate of mutual information, negated.

    Args:
        positive: Outputs of the discriminator for pairs that occur together, shape (N,).
        negative: Its outputs for independently drawn pairs, shape (draws, N).
    """
    return softplus(-positive).mean() + softplus(negative).mean()


def adjacency_loss(vectors: Tensor, adjacency: SparseMatrix, rows: Tensor | None = None) -> Tensor:
    """Weighted cross-entropy between the logistic function of all products h_i . h_j and the adjacency.

    Ones and zeros are weighted as in the published code, in which a pair (i, j), (j, i) counts as one edge:
    with E half the number of ones, ones by 1 / E and zeros by 1 / (N^2 - E). Memory stays at one block of
    rows of the products, also for the gradient.

    Args:
        vectors: Embeddings, shape (N, width).
        adjacency: Has an entry for every one, self loops included; their values are not used.
        rows: Sampled nodes whose rows stand for all; all rows when None.
    """
    num_nodes, edges = len(vectors), len(adjacency.columns) / 2
    products = entry_products(vectors, adjacency)
    attracting, repelling = softplus(-products).sum(), softplus(products).sum()
    if rows is None:
        everything = summed_softplus(vectors)
    else:
        everything = rectangle_softplus(vectors[rows], vectors) * (num_nodes / len(rows))
    return attracting / edges + (everything - repelling) / (num_nodes**2 - edges)


def rectangle_softplus(anchors: Tensor, columns: Tensor) -> Tensor:
    """The sum of softplus over all products of a row of `anchors` with a row of `columns`."""
    return apply(_RectangleSoftplus, anchors, columns)


class _RectangleSoftplus(torch.autograd.Function):
    """Computes both gradients block by block in the forward pass: keeping all products would take N x N."""

    @staticmethod
    def forward(ctx: Any, anchors: Tensor, columns: Tensor) -> Tensor:
        total = torch.zeros((), dtype=anchors.dtype, device=anchors.device)
        gradients, column_gradients = torch.empty_like(anchors), torch.zeros_like(columns)
        size = max(1, BLOCK_NUMBERS // len(columns))
        for part, gradient in zip(torch.split(anchors, size), torch.split(gradients, size), strict=True):
            products = part @ columns.T
            total += softplus(products).sum()
            probabilities = products.sigmoid_()
            torch.mm(probabilities, columns, out=gradient)
            column_gradients.addmm_(probabilities.T, part)
        ctx.save_for_backward(gradients, column_gradients)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        gradients, column_gradients = ctx.saved_tensors
        return gradient * gradients, gradient * column_gradients
