"""The error that a user can mend."""

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """Something the user gave is wrong; the message names the value, the place and the way out."""


class NoFeaturesError(InputError):
    """A graph without features, which not every method needs."""


def unknown(kind: str, name: object, choices: Iterable[str]) -> InputError:
    """An error for a name that is not among `choices`, offering the nearest ones.

    >>> unknown("method", "spgc", ["spgcl", "dgi"])
    InputError("unknown method 'spgc'; did you mean 'spgcl'? choose from: spgcl, dgi")
    """
    names = list(choices)
    near = difflib.get_close_matches(str(name), names, n=2, cutoff=0.6)
    hint = f"did you mean {' or '.join(repr(match) for match in near)}? " if near else ""
    return InputError(f"unknown {kind} {name!r}; {hint}choose from: {', '.join(names)}")
