"""What a page can show, as plain data: charts.js draws each kind by a function of the same name."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Item: TypeAlias = dict[str, Any]

# Longer curves are thinned evenly: no screen has more columns.
_MOST_POINTS = 2000
_LONGEST = 80


def shorten(text: str, limit: int = _LONGEST) -> str:
    """Text for display: cut off after `limit` characters."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def text(words: str) -> Item:
    """A paragraph."""
    return {"kind": "text", "text": words}


def code(words: str) -> Item:
    """A command to copy."""
    return {"kind": "code", "text": words}


def facts(pairs: Mapping[str, str], title: str = "") -> Item:
    """Names and values, in two columns that wrap."""
    return {"kind": "facts", "title": title, "pairs": [[name, shorten(v)] for name, v in pairs.items()]}


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    title: str = "",
    *,
    folded: bool = False,
    runs: Literal["", "rows", "columns"] = "",
) -> Item:
    """A table; numbers come as rounded text, and all columns but the first are aligned right.

    `runs` says whether there is one row, or one column after the first, per run, in the order of colours.
    """
    return {
        "kind": "table",
        "title": title,
        "columns": [shorten(str(column)) for column in columns],
        "rows": [[shorten(str(cell)) for cell in row] for row in rows],
        "folded": folded,
        "runs": runs,
    }


class Curve(NamedTuple):
    """Values over positions, and how they are drawn.

    Attributes:
        colour: Index in the palette.
        dash: Kind of line; 0 is solid.
    """

    positions: Sequence[float]
    values: Sequence[float]
    colour: int = 0
    dash: int = 0


def lines(
    title: str, curves: Mapping[str, Curve], across: str, *, better: str = "", logarithmic: bool = False
) -> Item:
    """Curves by name over a common axis called `across`; `better` says which values are good.

    With `logarithmic`, values that span more than a decade are drawn on a logarithmic scale, which is linear
    around zero so that it has negative values, too.
    """
    series = []
    for name, curve in curves.items():
        count = len(curve.values)
        kept = np.linspace(0, count - 1, min(count, _MOST_POINTS)).astype(int).tolist()
        series.append(
            {
                "name": shorten(name),
                "x": [curve.positions[index] for index in kept],
                "y": [_rounded(curve.values[index]) for index in kept],
                "colour": curve.colour,
                "dash": curve.dash,
            }
        )
    return {
        "kind": "lines",
        "title": title,
        "series": series,
        "across": across,
        "better": better,
        "logarithmic": logarithmic,
    }


def strips(title: str, rows: Sequence[Item], unit: str, range_: Sequence[float] = ()) -> Item:
    """Rows of dots, made by `strip`, over a common axis, which always covers `range_`."""
    return {"kind": "strips", "title": title, "rows": list(rows), "unit": unit, "range": list(range_)}


def strip(
    name: str,
    values: Sequence[float],
    mean: float,
    deviation: float | None,
    *,
    role: str = "other",
    colour: int | None = None,
    words: str = "",
) -> Item:
    """A row of `strips`: single values, if known, as dots, their mean as a bar, the deviation as text.

    The role is "own" for the run of the page, "quoted" for scores from the paper, else "other". The colour,
    if any, is an index in the palette; `words` replace the numbers.
    """
    words = words or (f"{mean:.2f}" if deviation is None else f"{mean:.2f} ± {deviation:.2f}")
    return {
        "name": shorten(name),
        "values": [_rounded(value) for value in values],
        "mean": _rounded(mean),
        "text": words,
        "role": role,
        "colour": colour,
    }


def matrix(title: str, names: Sequence[str], fractions: NDArray[np.float64], down: str, across: str) -> Item:
    """Fractions of classes by class, as a shaded table; rows sum to one, or are zero."""
    return {
        "kind": "matrix",
        "title": title,
        "names": [shorten(name, 24) for name in names],
        "values": np.round(fractions, 4).tolist(),
        "down": down,
        "across": across,
    }


def section(name: str, title: str, items: Sequence[Item], words: str = "") -> Item:
    """A part of the page with its own heading."""
    return {"id": name, "title": title, "text": words, "items": list(items)}


def _rounded(value: float) -> float | None:
    """Six digits, which is enough for a screen; None if not finite, as JSON has no such numbers."""
    return float(f"{value:.6g}") if np.isfinite(value) else None
