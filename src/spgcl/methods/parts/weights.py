"""How much each channel of a graph counts."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spgcl.methods.parts.channels import CHANNELS, COARSE

# Weights are drawn towards equal ones by a tenth of the largest, and by the error of a reliability.
SHRINKAGE, UNCERTAINTY = 0.1, 0.005
# Least squared weight of a node's own features where nothing but they repeats itself.
OWN_PART = 0.7


def channel_weights(agreement: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights of the channels from their agreement across halves, of length 1.

    Args:
        agreement: As `spgcl.methods.parts.halves.agreements` returns it.
    """
    weights = _counted(agreement.mean(axis=0))
    weights /= float(np.linalg.norm(weights))
    own = list(CHANNELS).index("own")
    if only_own_repeats(agreement) and weights[own] ** 2 < OWN_PART:
        weights[own] = 0
        weights *= (1 - OWN_PART) ** 0.5 / float(np.linalg.norm(weights))
        weights[own] = OWN_PART**0.5
    return weights


def only_own_repeats(agreement: NDArray[np.float64]) -> bool:
    """Whether a node's own features are told apart from chance, and its neighbours without it are not.

    Hops contain the node itself, so that its own features are what repeats itself in them; unless they do so
    better than it alone.
    """
    reliability = agreement.diagonal(axis1=1, axis2=2)
    means, chance = reliability.mean(axis=0), 2 * reliability.std(axis=0)
    names = list(CHANNELS)
    own, neighbours = names.index("own"), names.index("neighbours")
    best = means[[name not in COARSE for name in names]].argmax()
    return bool(best == own and means[own] > chance[own] and means[neighbours] <= chance[neighbours])


def _counted(agreement: NDArray[np.float64]) -> NDArray[np.float64]:
    """What every channel counts by the agreement of halves, averaged over repeats.

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
    return counted


def channel_record(agreement: NDArray[np.float64]) -> dict[str, Any]:
    """Reliability, its deviation over repeats and the weight of every channel.

    Args:
        agreement: As `spgcl.methods.parts.halves.agreements` returns it.
    """
    reliability = agreement.diagonal(axis1=1, axis2=2)
    columns = {
        "reliability": reliability.mean(axis=0),
        "deviation": reliability.std(axis=0),
        "weight": channel_weights(agreement),
    }
    return {
        name: {column: round(float(values[index]), 4) for column, values in columns.items()}
        for index, name in enumerate(CHANNELS)
    }
