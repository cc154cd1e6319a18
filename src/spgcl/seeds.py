"""What may be a seed."""

import operator
from typing import Any

from spgcl.errors import InputError

# What both torch and NumPy take.
LARGEST_SEED = 2**63 - 1


def checked_seed(seed: Any) -> int:
    """The seed as a whole number from 0 to 2^63 - 1; anything else is refused.

    >>> checked_seed(7)
    7
    """
    try:
        number = operator.index(seed)
    except TypeError:
        number = -1
    if isinstance(seed, bool) or not 0 <= number <= LARGEST_SEED:
        raise InputError(f"seed is {seed!r}; it must be a whole number, 0 or more and below 2^63")
    return number
