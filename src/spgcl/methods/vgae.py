"""VGAE: variational graph auto-encoder (Kipf and Welling, 2016)."""

from typing import Annotated, Any

import torch
from torch import Tensor

from spgcl.engine.all_pairs import SOFTPLUS_PRODUCTS
from spgcl.engine.convolutions import Block, Convolution
from spgcl.engine.encoders import BatchNorm
from spgcl.graph import Graph
from spgcl.methods.method import Method, Prepared
from spgcl.methods.parts.edge_keys import PreparedPairs
from spgcl.methods.parts.encoders import gcn_encoder
from spgcl.methods.parts.reconstruction import reconstruction
from spgcl.methods.ranges import Count, Fraction, Positive, SizesMemory, Width

# Deviations above e^10 mean nothing and would overflow when squared twice.
MAX_LOG_DEVIATION = 10.0


def divergence_from_prior(means: Tensor, log_deviations: Tensor) -> Tensor:
    """KL of the nodes' normal distributions from the standard one, averaged over nodes.

    Args:
        means: One row a node (mu).
        log_deviations: Logarithms of the standard deviations (log sigma), same shape.
    """
    terms = 1 + 2 * log_deviations - means.square() - (2 * log_deviations).exp()
    return -terms.sum(dim=1).mean() / 2


class VGAE(Method):
    """An auto-encoder that describes every node by a normal distribution; the embedding is its mean.

    Args:
        num_features: Width of the graph's features.
        hidden: Width of the first convolution, which means and deviations share.
        embedding_width: Width of the means and of the deviations.
        dropout: Share of activations dropped after the first convolution.
        batch_norm: After the first convolution: none, without learnable scale and shift, or with them.
        normalise_features: Divide feature rows by their L1 norm.
        negative_ratio: Pairs drawn as non-edges at every step, an edge; 0 takes all pairs, as the paper does.
        divergence_weight: Weight of the KL term; 1 is Eq. 3.
        steps: Updates of the weights.
        learning_rate: Of AdamW.
        weight_decay: Of AdamW.
    """

    static = True
    fewer_pairs = "negative_ratio=1"

    def __init__(
        self,
        num_features: int,
        *,
        hidden: Width = 512,
        embedding_width: Width = 256,
        dropout: Fraction = 0.0,
        batch_norm: BatchNorm = "none",
        normalise_features: bool = True,
        negative_ratio: Annotated[int, SizesMemory.IF_RAISED] = 1,
        divergence_weight: float = 1.0,
        steps: Count = 200,
        learning_rate: Positive = 0.01,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__()
        self.first = gcn_encoder(
            num_features, hidden, layers=1, activation="relu", dropout=dropout, batch_norm=batch_norm
        )
        self.means = Convolution(hidden, embedding_width)
        self.log_deviations = Convolution(hidden, embedding_width)
        self.normalise_features, self.negative_ratio = normalise_features, negative_ratio
        self.divergence_weight = divergence_weight
        self.products_a_pair = 0.0 if negative_ratio else SOFTPLUS_PRODUCTS * embedding_width
        self.steps, self.learning_rate, self.weight_decay = steps, learning_rate, weight_decay

    def prepare(self, graph: Graph, device: torch.device, supervision: Any = None) -> PreparedPairs:
        """Normalise the adjacency and, if asked, the features; number the edges."""
        return PreparedPairs.of(graph, device, normalise_features=self.normalise_features)

    def loss(self, prepared: Prepared, step: int, generator: torch.Generator) -> Tensor:
        """Eq. 3 with its sign turned, divided by the number of pairs; Z is one draw."""
        assert isinstance(prepared, PreparedPairs)
        graph = prepared.graph
        hidden, block = self.first(graph, None, generator), Block(graph.adjacency)
        means = self.means(hidden, block)
        log_deviations = self.log_deviations(hidden, block).clamp(max=MAX_LOG_DEVIATION)
        noise = torch.randn(means.shape, generator=generator, device=means.device, dtype=means.dtype)
        drawn = means + noise * log_deviations.exp()
        divergence = divergence_from_prior(means, log_deviations) / graph.num_nodes
        likelihood = reconstruction(drawn, prepared, self.negative_ratio, generator)
        return likelihood + self.divergence_weight * divergence

    @torch.no_grad()
    def embed(self, prepared: Prepared) -> Tensor:
        """The means (mu) of all nodes."""
        graph = prepared.graph
        embeddings: Tensor = self.means(self.first.embed(graph), Block(graph.adjacency))
        return embeddings
