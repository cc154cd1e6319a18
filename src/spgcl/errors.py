"""Errors that a user can fix, and notes that a user should read."""

import difflib
import warnings
from collections.abc import Iterable


class InputError(ValueError):
    """Invalid input from the user; the message names the value and says what to do."""


class NoFeaturesError(InputError):
    """The graph has no features; some methods need none."""


def unknown(kind: str, name: object, choices: Iterable[str]) -> InputError:
    """An error for a name that is not among `choices`, with the closest ones as suggestions.

    >>> unknown("method", "spgc", ["spgcl", "dgi"])
    InputError("unknown method 'spgc'; did you mean 'spgcl'? choose from: spgcl, dgi")
    """
    names = list(choices)
    near = difflib.get_close_matches(str(name), names, n=2, cutoff=0.6)
    hint = f"did you mean {' or '.join(repr(match) for match in near)}? " if near else ""
    return InputError(f"unknown {kind} {name!r}; {hint}choose from: {', '.join(names)}")


def printable(text: object) -> str:
    r"""Text in one line that a terminal only shows: control characters as in Python, such as \\x1b.

    >>> printable("a\x1b[31m\n b")
    'a\\x1b[31m b'
    """
    line = " ".join(str(text).split())
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)


# Characters of a value in a message.
_SHOWN = 80


def shown(value: object) -> str:
    """A value as it is written in a message: its representation, cut off where it gets long.

    >>> shown("abc"), len(shown("a" * 5000))
    ("'abc'", 80)
    """
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 4]}...{text[-1]}"


class Note(UserWarning):
    """Information for the user: a warning in Python, a line `note: ...` on the command line."""


def note(text: str | None) -> None:
    """Issue a note, unless `text` is empty or None."""
    if text:
        warnings.warn(text, Note, stacklevel=3)
