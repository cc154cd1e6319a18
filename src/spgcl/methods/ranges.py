"""Types of hyper-parameters: which numbers they allow, and whether they size memory.

A plain `int` or `float` in a method's signature allows any finite number that is not negative.
"""

import math
from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated


@dataclass(frozen=True)
class Range:
    """The finite numbers from `least` to `most`; either end may be left out."""

    least: float = 0.0
    most: float = math.inf
    without_least: bool = False
    without_most: bool = False

    def holds(self, number: float) -> bool:
        """Whether a number is finite and in the range."""
        above = number > self.least if self.without_least else number >= self.least
        below = number < self.most if self.without_most else number <= self.most
        return math.isfinite(number) and above and below

    def __str__(self) -> str:
        if self.most == math.inf:
            return f"above {self.least:g}" if self.without_least else f"{self.least:g} or more"
        if self.without_most:
            return f"at least {self.least:g} and below {self.most:g}"
        return f"between {self.least:g} and {self.most:g}"


class SizesMemory(IntEnum):
    """What a hyper-parameter sizes; when memory runs out, they are lowered in this order."""

    WEIGHTS = 1
    STEP = 2
    # Only worth lowering above its default.
    IF_RAISED = 3


NOT_NEGATIVE = Range()
Count = Annotated[int, Range(without_least=True)]
Positive = Annotated[float, Range(without_least=True)]
Fraction = Annotated[float, Range(most=1, without_most=True)]

Width = Annotated[Count, SizesMemory.WEIGHTS]
# Sizes what a step computes.
Size = Annotated[Count, SizesMemory.STEP]
Factor = Annotated[Count, SizesMemory.IF_RAISED]
