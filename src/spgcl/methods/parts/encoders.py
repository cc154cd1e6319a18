"""The encoder that most papers share."""

from functools import partial

from spgcl.engine.encoders import Encoder

# Graph convolutions; other arguments, also in place of these, are those of `Encoder`.
gcn_encoder = partial(Encoder, kind="gcn", layers=2, activation="prelu", dropout=0.0)
