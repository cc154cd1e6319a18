"""GAE and VGAE: graph auto-encoders, plain and variational (Kipf and Welling, 2016)."""

from typing import Annotated, Any

import torch
from torch import Tensor

from spgcl.engine.all_pairs import SOFTPLUS_PRODUCTS
from spgcl.engine.convolutions import Block, Convolution
from spgcl.engine.encoders import BatchNorm, Encoder
from spgcl.methods.method import Method
from spgcl.methods.parts.edge_keys import PreparedPairs, prepare_pairs
from spgcl.methods.parts.reconstruction import reconstruction
from spgcl.methods.ranges import Count, Fraction, Positive, SizesMemory, Width

# Deviations above e^10 mean nothing and would overflow when squared twice.
MAX_LOG_DEVIATION = 10.0

NegativeRatio = Annotated[int, SizesMemory.IF_RAISED]


class AutoEncoder(Method[PreparedPairs]):
    """Convolutions after a shared first one, whose outputs' inner products separate edges from other pairs.

    Args:
        hidden: Width of the first convolution.
        embedding_width: Width of the second convolution and of the embedding.
        dropout: Fraction of activations dropped after the first convolution.
        batch_norm: After the first convolution: none, without learnable scale and shift, or with them.
        negative_ratio: Pairs drawn as non-edges per edge at every step; 0 takes all pairs, as the paper does.
    """

    static = True
    prepare = prepare_pairs
    fewer_pairs = "negative_ratio=1"

    def __init__(
        self,
        num_features: int,
        *,
        hidden: Width = 512,
        embedding_width: Width = 512,
        dropout: Fraction = 0.5,
        batch_norm: BatchNorm = "none",
        normalise_features: bool = False,
        negative_ratio: NegativeRatio = 0,
        steps: Count = 200,
        learning_rate: Positive = 1e-3,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(steps, learning_rate, weight_decay, normalise_features)
        self.first = Encoder(
            num_features, hidden=hidden, layers=1, activation="relu", dropout=dropout, batch_norm=batch_norm
        )
        self.widths, self.negative_ratio = (hidden, embedding_width), negative_ratio
        self.products_per_pair = 0.0 if negative_ratio else SOFTPLUS_PRODUCTS * embedding_width

    @torch.no_grad()
    def _outputs(self, prepared: PreparedPairs, second: Convolution) -> Tensor:
        outputs: Tensor = second(self.first.embed(prepared.graph), Block(prepared.graph.adjacency))
        return outputs


class GAE(AutoEncoder):
    """Two convolutions whose outputs' inner products separate edges from other pairs of nodes."""

    def __init__(self, num_features: int, **shared: Any) -> None:
        super().__init__(num_features, **shared)
        self.second = Convolution(*self.widths)

    def loss(self, prepared: PreparedPairs, step: int, generator: torch.Generator) -> Tensor:
        """The reconstruction term of Eq. 3, with Z of Eq. 4."""
        graph = prepared.graph
        vectors = self.second(self.first(graph, None, generator), Block(graph.adjacency))
        return reconstruction(vectors, prepared, self.negative_ratio, generator)

    def embed(self, prepared: PreparedPairs) -> Tensor:
        """Z, the output of the second convolution."""
        return self._outputs(prepared, self.second)


class VGAE(AutoEncoder):
    """An auto-encoder that describes every node by a normal distribution; the embedding is its mean.

    Args:
        hidden: Width of the first convolution, which means and deviations share.
        embedding_width: Width of the means and of the deviations.
        divergence_weight: Weight of the KL term; 1 is Eq. 3.
    """

    def __init__(self, num_features: int, *, divergence_weight: float = 1.0, **shared: Any) -> None:
        super().__init__(num_features, **shared)
        self.means, self.log_deviations = Convolution(*self.widths), Convolution(*self.widths)
        self.divergence_weight = divergence_weight

    def loss(self, prepared: PreparedPairs, step: int, generator: torch.Generator) -> Tensor:
        """The negated Eq. 3, divided by the number of pairs; Z is one sample."""
        graph = prepared.graph
        hidden, block = self.first(graph, None, generator), Block(graph.adjacency)
        means = self.means(hidden, block)
        log_deviations = self.log_deviations(hidden, block).clamp(max=MAX_LOG_DEVIATION)
        noise = torch.randn(means.shape, generator=generator, device=means.device, dtype=means.dtype)
        drawn = means + noise * log_deviations.exp()
        divergence = divergence_from_prior(means, log_deviations) / graph.num_nodes
        likelihood = reconstruction(drawn, prepared, self.negative_ratio, generator)
        return likelihood + self.divergence_weight * divergence

    def embed(self, prepared: PreparedPairs) -> Tensor:
        """The means (mu) of all nodes."""
        return self._outputs(prepared, self.means)


def divergence_from_prior(means: Tensor, log_deviations: Tensor) -> Tensor:
    """KL of the nodes' normal distributions from the standard one, averaged over nodes.

    Args:
        means: One row per node (mu).
        log_deviations: Logarithms of the standard deviations (log sigma), same shape.
    """
    terms = 1 + 2 * log_deviations - means.square() - (2 * log_deviations).exp()
    return -terms.sum(dim=1).mean() / 2
