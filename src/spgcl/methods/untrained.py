"""An encoder with random weights: how much of a score the architecture explains."""

from spgcl.engine.convolutions import EncoderKind
from spgcl.engine.encoders import Activation, Encoder
from spgcl.methods.method import Method
from spgcl.methods.ranges import Factor, Width


class Untrained(Method):
    """The encoder of SP-GCL with its initial weights.

    Args:
        encoder: Graph convolution.
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
        super().__init__(normalise_features=normalise_features)
        # Dropout and batch norm do nothing before training.
        self.encoder = Encoder(
            num_features, kind=encoder, layers=layers, hidden=hidden, activation=activation, batch_norm="none"
        )

    def needs_memory(self) -> str:
        """Nothing: it is only evaluated."""
        return ""
