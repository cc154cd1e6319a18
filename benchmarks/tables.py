"""Write the tables of README.md and docs/, a figure, and the preset `validated`, from results/.

--check writes nothing and exits with 1 if one of them is stale; --full prints every setting that was scored,
and what the search found for every method.

python benchmarks/tables.py
python benchmarks/tables.py --check
python benchmarks/tables.py --full
"""

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import auto_tables
import comparison_tables
import criteria_tables
import default_tables
import hardening_tables
import large_tables
import regret_figure
import score_tables
import search_tables
import speed_tables
import store_tables
from markdown import table

from spgcl.datasets.entries import entries
from spgcl.experiments.page import reproduction
from spgcl.experiments.results import read_lines
from spgcl.methods import METHODS

ROOT = Path(__file__).parents[1]
PRESETS = "src/spgcl/methods/presets/validated.toml"
FIGURE = "docs/auto-regret.svg"
Record = dict[str, Any]


def dataset_table() -> str:
    """The benchmark graphs, from the table of entries."""
    rows = [
        [
            f"`{name}`",
            score_tables.metric(name),
            known.splits + ("" if known.split_seed is None else f", seed {known.split_seed}"),
            known.repository,
            known.licence,
            f"{known.nodes:,}",
        ]
        for name, known in entries().items()
    ]
    columns = ["data set", "metric", "splits", "publisher (GitHub)", "licence", "nodes"]
    return table(columns, rows, text_columns=5)


def difference_table() -> str:
    """Where the paper's table of data sets differs from the files, and why."""
    rows = [
        [f"`{name}`", figure.replace("_", " "), why, f"{known.paper[figure]:,}"]
        for name, known in entries().items()
        for figure, why in known.differs.items()
    ]
    return table(["data set", "figure", "why", "paper"], rows, text_columns=3)


def method_section(
    name: str, best: dict[str, dict[str, list[Record]]], searched: Sequence[Record], scores: Sequence[Record]
) -> str:
    """The scores on a method's page, and how their settings were found."""
    parts = [score_tables.method_table(name, best), search_tables.searched_text(searched, name, scores)]
    return "\n\n".join(part for part in parts if part)


def replaced(text: str, name: str, content: str, path: Path) -> str:
    """A document with the text between the markers of a block replaced."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    if text.count(begin) != 1 or text.count(end) != 1:
        raise SystemExit(f"{path}: needs the markers {begin} and {end}, once each")
    pattern = re.escape(begin) + r".*?" + re.escape(end)
    return re.sub(pattern, lambda _: f"{begin}\n{content}\n{end}", text, flags=re.DOTALL)


def documents(root: Path, results: Path) -> dict[Path, str]:
    """Every document with generated parts, as it should be."""
    measured: dict[str, list[Record]] = defaultdict(list)
    measured |= {path.stem: read_lines(path) for path in results.glob("*.jsonl")}
    searched = measured["search"]
    scores = score_tables.of_today(line for name in ("scores", "table1", "table2") for line in measured[name])
    named = search_tables.plainly_named(scores, searched)
    best = score_tables.best_of(named, "paper")
    sections = {
        name: section(speed_tables.shown(measured[name])) for name, section in speed_tables.SECTIONS.items()
    }
    summary = {"results": score_tables.summary_table(scores)}
    blocks = {
        f"docs/methods/{name}.md": {"scores": method_section(name, best, searched, scores)}
        for name in METHODS
    }
    sized = speed_tables.sized_section(measured["paired"], scores)
    blocks["docs/methods/spgcl.md"] = {
        **summary,
        "sized": sized,
        "large": large_tables.large_table(measured["large"]),
    }
    blocks["docs/methods/node2vec.md"]["walks"] = sections.pop("walks")
    blocks["docs/methods/auto.md"] |= {
        "beside": auto_tables.beside_table(scores),
        "ablation": auto_tables.ablation_table(measured["ablation"]),
        "few": auto_tables.few_table(measured["few_labels"]),
        "grid": auto_tables.grid_text(measured["grid"]),
        "large": large_tables.auto_text(measured["large"]),
    }
    blocks |= {
        "docs/choosing.md": {
            "choosing": auto_tables.choosing_table(measured["reliability"], scores),
            "criteria": criteria_tables.criteria_table(measured["criteria"]),
        },
        "README.md": {
            **summary,
            "default": auto_tables.ahead_text(scores),
            "speed": speed_tables.speed_summary(speed_tables.shown(measured["speed"])),
        },
        "docs/data.md": {"datasets": dataset_table(), "differences": difference_table()},
        "docs/results.md": {
            "budget": search_tables.budget_text(searched),
            "paper": score_tables.side_by_side(named, "paper"),
            "tuned": score_tables.side_by_side(named, "tuned"),
            "adjacency": comparison_tables.adjacency_text(results),
            "statistics": comparison_tables.statistics_text(named),
            "ranks": score_tables.ranks_table(named),
            "tenths": score_tables.tenths_table(measured["tenths"]),
            "search": search_tables.search_text(searched),
            "defaults": default_tables.default_table(searched, scores),
        },
        "docs/audit.md": comparison_tables.audit_blocks(results),
        "docs/scaling.md": {
            name: section(measured["store"]) for name, section in store_tables.SECTIONS.items()
        },
        "docs/reliability.md": {"hardening": hardening_tables.hardening_table(measured["hardening"])},
        "docs/speed.md": sections,
    }
    made = {
        root / PRESETS: search_tables.presets_text(searched),
        **reproduction(results, root / "docs"),
        root / FIGURE: regret_figure.regret_figure(measured["grid"]),
    }
    for name, contents in blocks.items():
        path = root / name
        made[path] = path.read_text(encoding="utf-8")
        for block, content in contents.items():
            made[path] = replaced(made[path], block, content, path)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a document is stale")
    parser.add_argument("--full", action="store_true", help="print every setting and what the search found")
    parser.add_argument("--results", type=Path, default=ROOT / "results")
    parser.add_argument("--root", type=Path, default=ROOT, help="folder of the documents")
    arguments = parser.parse_args()
    if arguments.full:
        searched = read_lines(arguments.results / "search.jsonl")
        print(score_tables.full_table(read_lines(arguments.results / "scores.jsonl")))
        print(
            f"\n{search_tables.found_table(searched, METHODS)}\n\n{search_tables.candidate_table(searched)}"
        )
        return
    stale = [
        (path, text)
        for path, text in documents(arguments.root, arguments.results).items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    for path, text in stale:
        name = path.relative_to(arguments.root)
        if arguments.check:
            print(f"{name} is stale; run python benchmarks/tables.py", file=sys.stderr)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"wrote {name}{'; run again for what reads it' if str(name) == PRESETS else ''}")
    redrawn = comparison_tables.draw_statistics(arguments.root, arguments.results, check=arguments.check)
    if arguments.check and (stale or redrawn):
        sys.exit(1)


if __name__ == "__main__":
    main()
