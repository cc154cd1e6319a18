"""Methods against no training, and the audit: tables and a figure."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markdown import NO_RESULTS
from score_tables import BOTH_PROBES, REFERENCE, statistics_cells
from search_tables import plainly_named

from spgcl.experiments.effects import adjacency_sentences, adjacency_table, epoch_table, mask_table
from spgcl.experiments.figures import write_figure
from spgcl.experiments.findings import comparable_text, findings_text
from spgcl.experiments.plan import plan_of
from spgcl.experiments.render import markdown
from spgcl.experiments.results import Results, read_lines
from spgcl.experiments.statistics import (
    Comparison,
    compare,
    comparison_figure,
    comparison_table,
    described,
    shared_graphs,
)

FIGURE = Path("docs/figures/statistics")
Record = dict[str, Any]


def compared(records: Sequence[Record]) -> dict[str, list[Comparison]]:
    """Every method against the best without training, by protocol; empty without results."""
    found = {title: statistics_cells(records, protocol) for protocol, title in BOTH_PROBES.items()}
    return {
        title: compare(cells, REFERENCE)
        for title, cells in found.items()
        if REFERENCE in cells and shared_graphs(cells)
    }


def statistics_text(records: Sequence[Record]) -> str:
    """A table per protocol."""
    tables = [
        comparison_table(found, REFERENCE, f"### {title.capitalize()}")
        for title, found in compared(records).items()
    ]
    return "\n\n".join(map(markdown, tables)) or NO_RESULTS


def draw_statistics(root: Path, results: Path, *, check: bool) -> bool:
    """Draw the figure of the statistics again if its numbers have changed; whether they have."""
    scores, searched = (read_lines(results / f"{name}.jsonl") for name in ("scores", "search"))
    found = compared(plainly_named(scores, searched))
    drawn = (root / FIGURE).with_suffix(".svg")
    text = described(found)
    if not found or (drawn.exists() and text in drawn.read_text(encoding="utf-8")):
        return False
    if check:
        print(f"{FIGURE}.svg is stale; run python benchmarks/tables.py", file=sys.stderr)
    else:
        write_figure(comparison_figure(found, REFERENCE), root / FIGURE, text)
        print(f"wrote {FIGURE}.svg and {FIGURE}.png")
    return True


def adjacency_text(results: Path) -> str:
    """What to know of the scores on Chameleon and Squirrel."""
    return " ".join(adjacency_sentences(Results(plan_of("audit"), results))) or NO_RESULTS


def audit_blocks(results: Path) -> dict[str, str]:
    """The generated parts of the audit."""
    measured = Results(plan_of("audit"), results)
    makers = {"epochs": epoch_table, "masks": mask_table, "adjacency": adjacency_table}
    return {
        "findings": findings_text(),
        "comparable": comparable_text(),
        **{name: markdown(make(measured)) for name, make in makers.items()},
    }
