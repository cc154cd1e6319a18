"""The page of the documents: every table beside the paper's, what holds, and what contradicts itself."""

from collections.abc import Mapping
from pathlib import Path

from spgcl.experiments.claims import claims
from spgcl.experiments.figures import FIGURES
from spgcl.experiments.layouts import tables_of
from spgcl.experiments.paper import inconsistencies
from spgcl.experiments.plan import NAMES, plan_of
from spgcl.experiments.render import Table, markdown
from spgcl.experiments.results import Results

_HEAD = """\
# Reproduction of the paper

Written by `python benchmarks/tables.py` from [results/](../results/README.md); nothing on this page is typed
by hand but the paper's own figures. The same tables, as Markdown, LaTeX and HTML, and the figures:

```text
spgcl reproduce all                    # what has no result yet is run; can be stopped and started again
spgcl reproduce table6 fig-topk        # some of them
spgcl reproduce all --quick            # a small version on the built-in graphs, without data
```

A cell has our mean and its standard deviation over full retrainings, then the paper's figure and the
difference in parentheses. What was not measured, as data or time were missing, is `-`."""


def reproduction_page(folder: Path) -> str:
    """The whole page from a folder of results."""
    names = [name for name in NAMES if name.startswith(("table", "fig-"))]
    found = {name: Results(plan_of(name), folder) for name in names}
    parts = [_HEAD, "## What holds and what does not", markdown(_claims_table(found))]
    parts += ["## Where the paper contradicts itself, or the data"]
    parts += ["\n".join(f"- {sentence}" for sentence in inconsistencies())]
    for name, results in found.items():
        parts += _section(name, results)
    return "\n\n".join(parts) + "\n"


def _claims_table(found: Mapping[str, Results]) -> Table:
    rows = [[claim.text, claim.verdict, claim.evidence or "-"] for claim in claims(found)]
    return Table("", ["claim", "here", "evidence"], rows, text_columns=3)


def _section(name: str, results: Results) -> list[str]:
    total, missing = len(results.plan.runs), len(results.missing())
    parts = [f"## {_heading(name)}"]
    if total:
        parts.append(f"{total - missing} of {total} runs measured{_where(results)}.")
    if results.plan.layout in FIGURES and missing < total:
        parts.append(f"![{results.plan.title}](figures/{name}.svg)")
    return [*parts, *map(markdown, tables_of(results))]


def _heading(name: str) -> str:
    figures = {"fig-distance": "3", "fig-cover": "4", "fig-topk": "5, left", "fig-thop": "5, right"}
    return f"Figure {figures[name]}" if name in figures else f"Table {name.removeprefix('table')}"


def _where(results: Results) -> str:
    lines = [line for run in results.plan.runs if (line := results.of(run))]
    places = sorted({line["processor"] for line in lines})
    return f", on {' and '.join(places)}" if places else ""
