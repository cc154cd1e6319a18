"""How much each channel of a graph counts."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spgcl.methods.parts.channels import CHANNELS, COARSE

# Weights are drawn towards equal ones by a tenth of the largest, and by the error of a reliability.
SHRINKAGE, UNCERTAINTY = 0.1, 0.005


def channel_weights(agreement: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights of the channels from their agreement across halves.

    A channel counts by its reliability, the agreement with itself. A coarse one repeats itself even where it
    is about nothing else, so it counts by the part of it that it has in common with finer ones: the squared
    correlation, corrected for the unreliability of both, with neighbours or two hops, whichever is less.
    """
    reliability: NDArray[np.float64] = agreement.diagonal().clip(min=0)
    names = list(CHANNELS)
    counted = reliability.copy()
    for channel in map(names.index, COARSE):
        for other in (names.index("neighbours"), names.index("two hops")):
            norm = max(reliability[channel] * reliability[other], 1e-6)
            common = np.clip(agreement[channel, other], 0, None) ** 2 / norm
            counted[channel] = min(counted[channel], reliability[channel] * common)
    drawn = SHRINKAGE * counted.max() + UNCERTAINTY
    # Degrees are no features of a user's: without evidence they do not count.
    counted[np.array(names) != "degrees"] += drawn
    return counted / float(np.linalg.norm(counted))


def channel_record(agreement: NDArray[np.float64]) -> dict[str, Any]:
    """Reliability, its deviation over repeats and the weight of every channel.

    Args:
        agreement: As `spgcl.methods.parts.halves.agreements` returns it.
    """
    reliability = agreement.diagonal(axis1=1, axis2=2)
    columns = {
        "reliability": reliability.mean(axis=0),
        "deviation": reliability.std(axis=0),
        "weight": channel_weights(agreement.mean(axis=0)),
    }
    return {
        name: {column: round(float(values[index]), 4) for column, values in columns.items()}
        for index, name in enumerate(CHANNELS)
    }
