"""Whether a claim holds: in every case, in some, or in none."""

from collections.abc import Callable, Mapping
from typing import Literal

from spgcl.experiments.results import Results

Verdict = Literal["holds", "holds in part", "does not hold", "not measured"]
Found = Mapping[str, Results]
Check = Callable[[Found], tuple[Verdict, str]]
# A difference in points that a reader would call none.
CLOSE = 2.0


def verdict_of(right: int, total: int) -> Verdict:
    """The verdict when so many of all measured cases agree with the claim."""
    if not total:
        return "not measured"
    return "holds" if right == total else "holds in part" if right else "does not hold"
