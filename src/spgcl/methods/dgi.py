"""DGI: nodes of the graph against nodes of a shuffled one (Velickovic et al., ICLR 2019)."""

import torch
from torch import Tensor

from spgcl.engine.encoders import Activation, BatchNorm, Encoder
from spgcl.methods.method import Method, Prepared
from spgcl.methods.parts.augment import shuffle_nodes
from spgcl.methods.parts.discriminators import Bilinear, noise_contrastive, summarise
from spgcl.methods.ranges import Count, Factor, Positive, Width


class DGI(Method):
    """A discriminator learns which nodes go with a summary of the graph: real ones, not shuffled ones."""

    static = True

    def __init__(
        self,
        num_features: int,
        *,
        layers: Factor = 2,
        hidden: Width = 1024,
        activation: Activation = "prelu",
        batch_norm: BatchNorm = "plain",
        normalise_features: bool = False,
        steps: Count = 300,
        learning_rate: Positive = 3e-4,
        weight_decay: float = 1e-4,
    ) -> None:
        super().__init__(steps, learning_rate, weight_decay, normalise_features)
        self.encoder = Encoder(
            num_features, hidden=hidden, layers=layers, activation=activation, batch_norm=batch_norm
        )
        self.discriminator = Bilinear(hidden, hidden)

    def loss(self, prepared: Prepared, step: int, generator: torch.Generator) -> Tensor:
        """Score the nodes of the graph and of its shuffled copy against the summary of the graph."""
        real = self.encoder(prepared.graph, None, generator)
        fake = self.encoder(shuffle_nodes(prepared.graph, generator), None, generator)
        summary = summarise(real)
        return noise_contrastive(
            self.discriminator.against(real, summary), self.discriminator.against(fake, summary)
        )
