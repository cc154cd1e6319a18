"""Tables of documents."""

from collections.abc import Iterable, Sequence

from spgcl.experiments.render import Table, markdown

NO_RESULTS = "No results yet."


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, text_columns: int = 1) -> str:
    """A Markdown table, its columns right-aligned after the first `text_columns`."""
    return markdown(Table("", columns, list(rows), text_columns=text_columns))
