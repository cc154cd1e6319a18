"""The encoder that most papers share."""

from spgcl.engine.encoders import Activation, BatchNorm, Encoder


def gcn_encoder(
    num_features: int,
    hidden: int,
    *,
    layers: int = 2,
    activation: Activation = "prelu",
    batch_norm: BatchNorm,
    dropout: float = 0.0,
    widening: int = 1,
) -> Encoder:
    """Graph convolutions; the arguments are those of `Encoder`."""
    return Encoder(
        num_features,
        kind="gcn",
        layers=layers,
        hidden=hidden,
        activation=activation,
        dropout=dropout,
        batch_norm=batch_norm,
        widening=widening,
    )
