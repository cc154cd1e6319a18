"""The page of the documents: every table beside the paper's, what holds, and what contradicts itself."""

from collections.abc import Mapping
from pathlib import Path

from spgcl.experiments.claims import claims
from spgcl.experiments.figures import current_svg, has_figure
from spgcl.experiments.layouts import tables_of
from spgcl.experiments.paper import inconsistencies
from spgcl.experiments.plan import NAMES, plan_of
from spgcl.experiments.render import Cell, Strong, Table, markdown
from spgcl.experiments.results import Results

# Experiments of the paper itself.
PAPER = tuple(name for name in NAMES if name.startswith(("table", "fig-")))
_HEAD = """\
# Reproduction of the paper

Written from [results/](../results/README.md) by `python benchmarks/tables.py`. One command makes every table
and figure of the paper again, as Markdown, LaTeX and HTML, and SVG and PNG:

```text
spgcl reproduce all                          # in a checkout: most is in results/ and is not run again
spgcl reproduce table6 fig-topk --workers 8 --device cuda
spgcl reproduce table6 --graph chameleon     # run one graph only
spgcl reproduce table6 --no-run              # write what there is
spgcl reproduce all --quick                  # small versions on the built-in graphs, without data
```

What is run is data: one file per table or figure in `src/spgcl/experiments/plans/`. Every run is a line of
`results/NAME.jsonl`, written as soon as it is measured: stop the command at any time and start it again.

A cell has our mean and its standard deviation over full retrainings; in parentheses the paper's figure and
the difference. What was not measured, as data or time were missing, is `-`."""


def reproduction(folder: Path, documents: Path) -> dict[Path, str]:
    """The page and its figures by path, from a folder of results, for a folder of documents.

    A figure that is there is kept if it was drawn from the same values.
    """
    found = {name: Results(plan_of(name), folder) for name in PAPER}
    made = {documents / "reproduction.md": _page(found)}
    for name, results in found.items():
        path = documents / "figures" / f"{name}.svg"
        if has_figure(results):
            made[path] = current_svg(results, path.read_text("utf-8") if path.exists() else "")
    return made


def _page(found: Mapping[str, Results]) -> str:
    parts = [_HEAD, "## What holds and what does not", markdown(_claims_table(found))]
    parts += ["## Where the paper contradicts itself, or the data"]
    parts += ["\n".join(f"- {sentence}" for sentence in inconsistencies())]
    for name, results in found.items():
        parts += _section(name, results)
    return "\n\n".join(parts) + "\n"


def _claims_table(found: Mapping[str, Results]) -> Table:
    rows: list[list[Cell]] = []
    for claim in claims(found):
        verdict = Strong(claim.verdict) if "not hold" in claim.verdict else claim.verdict
        rows.append([claim.text, verdict, claim.evidence or "-"])
    return Table("", ["claim", "here", "evidence"], rows, text_columns=3)


def _section(name: str, results: Results) -> list[str]:
    total, missing = len(results.plan.runs), len(results.missing())
    parts = [f"## {_heading(name)}"]
    if total:
        parts.append(f"{total - missing} of {total} runs measured{_where(results)}.")
    if has_figure(results):
        parts.append(f"![{results.plan.title}](figures/{name}.svg)")
    return [*parts, *map(markdown, tables_of(results))]


def _heading(name: str) -> str:
    figures = {"fig-distance": "3", "fig-cover": "4", "fig-topk": "5, left", "fig-thop": "5, right"}
    return f"Figure {figures[name]}" if name in figures else f"Table {name.removeprefix('table')}"


def _where(results: Results) -> str:
    lines = [line for run in results.plan.runs if (line := results.of(run))]
    places = sorted({line["processor"] for line in lines})
    return f", on {', '.join(places)}" if places else ""
