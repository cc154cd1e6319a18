"""Pieces of Markdown."""

from collections.abc import Iterable, Sequence

NO_RESULTS = "No results yet."


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, text_columns: int = 1) -> str:
    """A Markdown table, its columns right-aligned after the first `text_columns`."""
    rule = ["---" if index < text_columns else "---:" for index in range(len(columns))]
    lines = [columns, rule, *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
