"""One table in three formats: every cell arrives, and no cell can break the format."""

import html
import re
from html.parser import HTMLParser

import pytest

from spgcl.experiments.render import Strong, Table, html_table, latex, markdown, write_tables

TABLE = Table(
    "Scores of 2 methods",
    ["method", "a_b", "100 %"],
    [["one|two", "1.5 ± 0.2", Strong("2")], [], ["<script>", "-", "$x^2$ & y"]],
    notes=["Below."],
)


class Cells(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found, self.tags = [], []

    def handle_starttag(self, tag, attrs):
        del attrs
        self.tags.append(tag)

    def handle_data(self, data):
        if data.strip():
            self.found.append(data)


def test_markdown_keeps_a_cell_in_its_column():
    lines = markdown(TABLE).splitlines()
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines if line.startswith("|")]
    assert {len(row) for row in rows} == {3}
    assert rows[1] == [" --- ", " ---: ", " ---: "]
    assert rows[2][2].strip() == "**2**"
    assert lines[0] == TABLE.title
    assert lines[-1] == "Below."


def test_latex_escapes_what_it_would_read_as_a_command():
    text = latex(TABLE)
    assert r"a\_b" in text
    assert r"100 \%" in text
    assert r"1.5 $\pm$ 0.2 & \textbf{2} \\" in text
    assert r"\$x\textasciicircum{}2\$ \& y" in text
    body = text.split(r"\midrule")
    # One rule below the heading and one for the empty row.
    assert len(body) == 3
    assert text.count("{") == text.count("}")


def test_html_has_every_cell_and_no_tag_of_theirs():
    reader = Cells()
    reader.feed(html_table(TABLE))
    wanted = [
        TABLE.title,
        *TABLE.columns,
        "one|two",
        "1.5 ± 0.2",
        "2",
        "<script>",
        "-",
        "$x^2$ & y",
        "Below.",
    ]
    assert reader.found == wanted
    assert "script" not in reader.tags


@pytest.mark.parametrize("suffix", ["md", "tex", "html"])
def test_all_formats_are_written(tmp_path, suffix):
    paths = write_tables(tmp_path / "out", "table0", "Table 0", [TABLE])
    path = tmp_path / "out" / f"table0.{suffix}"
    assert path in paths
    assert "1.5" in html.unescape(path.read_text(encoding="utf-8"))
