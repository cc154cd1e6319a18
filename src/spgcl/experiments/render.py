"""One table as Markdown, LaTeX and HTML."""

import html
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from spgcl.files import replacing


class Strong(NamedTuple):
    """The text of a cell in bold."""

    text: str


Cell = str | Strong
_LATEX = {
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
    **{"±": r"$\pm$", "†": r"$\dagger$", "≥": r"$\geq$", "≤": r"$\leq$", "`": ""},
}


@dataclass(frozen=True)
class Table:
    """A table as values, without the marks of any format.

    Attributes:
        title: What is shown, one sentence.
        columns: Headings.
        rows: As many cells per row as there are columns; a row with no cells is a rule.
        notes: Sentences below the table.
        text_columns: How many of the first columns are aligned left; the others are numbers.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = ()
    text_columns: int = 1


def markdown(table: Table) -> str:
    """The table in Markdown, its title above and its notes below."""
    rule = ["---" if index < table.text_columns else "---:" for index in range(len(table.columns))]
    rows = [[_marked(cell, _markdown_text, "**{}**") for cell in row] for row in table.rows if row]
    lines = [f"| {' | '.join(line)} |" for line in (list(map(_markdown_text, table.columns)), rule, *rows)]
    return "\n\n".join(part for part in (table.title, "\n".join(lines), *table.notes) if part)


def latex(table: Table) -> str:
    """The table as a LaTeX `table`, for the packages `booktabs` and `graphicx`."""
    align = "l" * table.text_columns + "r" * (len(table.columns) - table.text_columns)
    rows = [
        " & ".join(_marked(cell, _latex_text, r"\textbf{{{}}}") for cell in row) + r" \\"
        if row
        else r"\midrule"
        for row in table.rows
    ]
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{_latex_text(' '.join([table.title, *table.notes]))}}}",
            r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
            rf"\begin{{tabular}}{{{align}}}",
            r"\toprule",
            " & ".join(map(_latex_text, table.columns)) + r" \\",
            r"\midrule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}}",
            r"\end{table}",
        ]
    )


def html_table(table: Table) -> str:
    """The table as an HTML `figure`."""
    rows = [
        _html_row(table, [_marked(cell, html.escape, "<strong>{}</strong>") for cell in row], "td")
        for row in table.rows
        if row
    ]
    notes = [f"<p>{html.escape(sentence)}</p>" for sentence in table.notes]
    return "\n".join(
        [
            "<figure>",
            f"<figcaption>{html.escape(table.title)}</figcaption>",
            "<table>",
            f"<thead>{_html_row(table, list(map(html.escape, table.columns)), 'th')}</thead>",
            "<tbody>",
            *rows,
            "</tbody>",
            "</table>",
            *notes,
            "</figure>",
        ]
    )


def html_page(title: str, parts: Iterable[str]) -> str:
    """A whole page, readable without anything else."""
    style = (
        "body{font:15px/1.5 sans-serif;margin:2em auto;max-width:80em;padding:0 1em}"
        "figure{margin:1em 0;overflow-x:auto}table{border-collapse:collapse}"
        "th,td{padding:.2em .6em;border-bottom:1px solid #ccc;white-space:nowrap}.number{text-align:right}"
    )
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
            f"<title>{html.escape(title)}</title>",
            f"<style>{style}</style></head><body>",
            f"<h1>{html.escape(title)}</h1>",
            *parts,
            "</body></html>\n",
        ]
    )


def write_tables(
    folder: Path, name: str, title: str, tables: Sequence[Table], figures: Sequence[Path] = ()
) -> list[Path]:
    """Write NAME.md, NAME.tex and NAME.html, each with all tables, and return their paths.

    Figures beside them are shown in the formats that can: SVG in Markdown and HTML, PNG in LaTeX.
    """
    folder.mkdir(parents=True, exist_ok=True)
    drawn = [path.name for path in figures if path.suffix == ".svg"]
    printed = [path.name for path in figures if path.suffix == ".png"]
    texts: Mapping[str, str] = {
        "md": "\n\n".join([f"# {title}", *(f"![{title}]({file})" for file in drawn), *map(markdown, tables)])
        + "\n",
        "tex": "\n\n".join(
            [*(rf"\includegraphics[width=\linewidth]{{{file}}}" for file in printed), *map(latex, tables)]
        )
        + "\n",
        "html": html_page(
            title,
            [
                *(f'<img src="{html.escape(file)}" alt="{html.escape(title)}">' for file in drawn),
                *map(html_table, tables),
            ],
        ),
    }
    paths = []
    for suffix, text in texts.items():
        path = folder / f"{name}.{suffix}"
        with replacing(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
        paths.append(path)
    return paths


def _marked(cell: Cell, escape: Callable[[str], str], strong: str) -> str:
    return strong.format(escape(cell.text)) if isinstance(cell, Strong) else escape(cell)


def _html_row(table: Table, cells: Sequence[str], tag: str) -> str:
    marked = [
        f"<{tag}>{cell}</{tag}>" if index < table.text_columns else f'<{tag} class="number">{cell}</{tag}>'
        for index, cell in enumerate(cells)
    ]
    return f"<tr>{''.join(marked)}</tr>"


def _markdown_text(text: str) -> str:
    return text.replace("|", r"\|").replace("\n", " ")


def _latex_text(text: str) -> str:
    return re.sub("|".join(map(re.escape, _LATEX)), lambda found: _LATEX[found[0]], text)
