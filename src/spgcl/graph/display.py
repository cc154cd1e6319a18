"""Facts for people: small tables of HTML, which notebooks show for an object, aligned text, times."""

import html
from collections.abc import Mapping, Sequence
from typing import Any


def facts(title: str, pairs: Mapping[str, Any]) -> str:
    """A title and names with values.

    >>> facts("Graph", {"nodes": "3"})
    '<table><caption>Graph</caption><tr><th>nodes</th><td>3</td></tr></table>'
    """
    rows = "".join(
        f"<tr><th>{html.escape(name)}</th><td>{html.escape(str(value))}</td></tr>"
        for name, value in pairs.items()
    )
    return f"<table><caption>{html.escape(title)}</caption>{rows}</table>"


def aligned(lines: Sequence[Sequence[str]]) -> list[str]:
    """Lines of cells as text in columns."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]


def rows(title: str, columns: list[str], lines: list[list[str]]) -> str:
    """A title and rows of text under names."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
    body = "".join(
        f"<tr>{''.join(f'<td>{html.escape(str(cell))}</td>' for cell in line)}</tr>" for line in lines
    )
    return f"<table><caption>{html.escape(title)}</caption><tr>{head}</tr>{body}</table>"


def lasting(seconds: float) -> str:
    """A length of time in the unit that suits it.

    >>> lasting(40), lasting(200), lasting(9000)
    ('40 s', '3 min', '2.5 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 3600:.1f} h" if seconds > 5400 else f"{seconds / 60:.0f} min"
