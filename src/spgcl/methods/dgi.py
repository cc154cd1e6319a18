"""DGI: nodes of the graph are told from nodes of a shuffled one (Velickovic et al., ICLR 2019)."""

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from spgcl.engine.encoders import Activation, BatchNorm
from spgcl.methods.method import Method, Prepared
from spgcl.methods.parts.augment import shuffle_nodes
from spgcl.methods.parts.encoders import gcn_encoder
from spgcl.methods.ranges import Count, Factor, Positive, Width


class DGI(Method):
    """A discriminator learns which nodes go with a summary of the graph: real ones, not shuffled ones.

    Args:
        num_features: Width of the graph's features.
        layers: Convolutions in the encoder.
        hidden: Width of the encoder and of the embedding.
        activation: Activation of the encoder.
        batch_norm: After every layer: none, without learnable scale and shift, or with them.
        normalise_features: Divide feature rows by their L1 norm.
        steps: Updates of the weights.
        learning_rate: Of AdamW.
        weight_decay: Of AdamW.
    """

    static = True

    def __init__(
        self,
        num_features: int,
        *,
        layers: Factor = 2,
        hidden: Width = 512,
        activation: Activation = "prelu",
        batch_norm: BatchNorm = "plain",
        normalise_features: bool = True,
        steps: Count = 300,
        learning_rate: Positive = 1e-3,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__()
        self.encoder = gcn_encoder(
            num_features, hidden, layers=layers, activation=activation, batch_norm=batch_norm
        )
        self.discriminator = Bilinear(hidden, hidden)
        self.normalise_features = normalise_features
        self.steps, self.learning_rate, self.weight_decay = steps, learning_rate, weight_decay

    def loss(self, prepared: Prepared, step: int, generator: torch.Generator) -> Tensor:
        """Score the nodes of the graph and of its shuffled copy against the summary of the graph."""
        real = self.encoder(prepared.graph, None, generator)
        fake = self.encoder(shuffle_nodes(prepared.graph, generator), None, generator)
        summary = summarise(real)
        return noise_contrastive(
            self.discriminator.against(real, summary), self.discriminator.against(fake, summary)
        )


class Bilinear(nn.Module):
    """Scores x^T W y + b of pairs, the discriminator of DGI, GMI and MVGRL."""

    def __init__(self, width: int, other_width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width, other_width))
        self.bias = nn.Parameter(torch.zeros(1))
        # As the three publications' code has it: a leading dimension of one counts as the outputs in Glorot's
        # rule, so that the range is far smaller than that of a matrix, and scores start close to zero.
        nn.init.xavier_uniform_(self.weight.data[None])

    def against(self, rows: Tensor, vector: Tensor) -> Tensor:
        """Scores of all rows with one vector, shape (rows,)."""
        return rows @ (self.weight @ vector) + self.bias


def summarise(rows: Tensor) -> Tensor:
    """The readout R: the logistic function of the mean row."""
    return rows.mean(dim=0).sigmoid()


def noise_contrastive(positive: Tensor, negative: Tensor) -> Tensor:
    """Binary cross-entropy between scores of true pairs and of others, Eq. 1 of the DGI paper, negated.

    Args:
        positive: Scores, before the logistic function, of pairs that belong together, shape (N,).
        negative: Scores of pairs that do not, shape (M,).
    """
    count = positive.numel() + negative.numel()
    return (softplus(-positive).sum() + softplus(negative).sum()) / count
