"""What commands print: tables for people, plain text when piped, JSON for machines, notes on stderr."""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from spgcl.errors import printable

# Characters of a bar of reliability 1.
_BAR = 24


def print_json(record: Any) -> None:
    """One JSON value, alone on stdout."""
    text = json.dumps(record, indent=2, ensure_ascii=False)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(record, indent=2)
    print(text)


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """A title and a table on stdout: drawn on a terminal, aligned plain text when piped."""
    print(printable(title))
    if not rows:
        return
    cells = [[_text(value) for value in row] for row in rows]
    numeric = [all(map(_is_number, column)) for column in zip(*rows, strict=True)]
    if sys.stdout.isatty():
        _print_rich(columns, cells, numeric)
        return
    lines = [list(columns), *cells]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        padded = [
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(line, widths, numeric, strict=True)
        ]
        print("  ".join(padded).rstrip())


def _print_rich(columns: Sequence[str], cells: list[list[str]], numeric: list[bool]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    console = Console()
    # On a narrow terminal descriptions are folded; numbers, and names unless they are long, are not.
    longest = max(len(row[0]) for row in cells)
    for index, (name, right) in enumerate(zip(columns, numeric, strict=True)):
        whole = right or (index == 0 and longest <= console.width // 3)
        table.add_column(name, justify="right" if right else "left", overflow="fold", no_wrap=whole)
    for row in cells:
        table.add_row(*[Text(cell) for cell in row])
    console.print(table)


def print_verdict(record: Mapping[str, Any]) -> None:
    """The reliability of a graph's channels as a table with bars, and what it says."""
    from spgcl.report.words import RELIABILITY_COLUMNS, reliability_rows

    rows = [[*row, "█" * round(_BAR * max(float(row[1]), 0))] for row in reliability_rows(record)]
    print_table("without labels", [*RELIABILITY_COLUMNS, ""], rows)
    print(*record["verdict"], sep="\n")


def note(text: str) -> None:
    """A remark for people, on stderr so that stdout stays clean."""
    print(f"note: {printable(text)}", file=sys.stderr)


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else printable(value)
