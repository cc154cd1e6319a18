"""An encoder with random weights: how much of a score the architecture explains."""

from spgcl.engine.convolutions import EncoderKind
from spgcl.engine.encoders import Activation, Encoder
from spgcl.methods.method import Method
from spgcl.methods.ranges import Factor, Width


class Untrained(Method):
    """The encoder that SP-GCL trains, with the weights it starts from.

    Args:
        num_features: Width of the graph's features.
        encoder: Graph convolution.
        layers: Convolutions in the encoder.
        hidden: Width of the encoder and the embedding.
        activation: Activation of the encoder.
        normalise_features: Divide feature rows by their L1 norm.
    """

    def __init__(
        self,
        num_features: int,
        *,
        encoder: EncoderKind = "gcn",
        layers: Factor = 2,
        hidden: Width = 1024,
        activation: Activation = "prelu",
        normalise_features: bool = True,
    ) -> None:
        super().__init__()
        # Dropout and batch norm do nothing before training.
        self.encoder = Encoder(
            num_features,
            kind=encoder,
            layers=layers,
            hidden=hidden,
            activation=activation,
            dropout=0.0,
            batch_norm="none",
        )
        self.normalise_features = normalise_features
