"""Write the tables of README.md and docs/, and the preset `validated`, from results/.

--check only says (exit 1) which are stale.

python benchmarks/tables.py
python benchmarks/tables.py --check
"""

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import score_tables
import search_tables
import spaces
import speed_tables
from markdown import NO_RESULTS, table
from record import read_lines

from spgcl.datasets.entries import entries
from spgcl.methods import METHODS

ROOT = Path(__file__).parents[1]
PRESETS = "src/spgcl/methods/presets/validated.toml"
Record = dict[str, Any]


def dataset_table() -> str:
    """The benchmark graphs as the table of entries has them."""
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
    """Where the paper's table of data sets is not what the files give, and why."""
    rows = [
        [f"`{name}`", figure.replace("_", " "), why, f"{known.paper[figure]:,}"]
        for name, known in entries().items()
        for figure, why in known.differs.items()
    ]
    return table(["data set", "figure", "why", "paper"], rows, text_columns=3)


def results_page(
    scores: Sequence[Record], named: Sequence[Record], searched: Sequence[Record], tenths: Sequence[Record]
) -> str:
    """docs/results.md; `named` are the scores by `search_tables.plainly_named`."""
    more = ", ".join(sorted(spaces.LARGER_BUDGET))
    return f"""# Results

Written by `python benchmarks/tables.py` from [results/](../results/README.md); not edited by hand.

## Scores

Test scores in percent, all nodes kept. A score is the mean over the data set's splits (over probe starts
where there is one split) and over full retrainings; ± is the population standard deviation over the
retrainings. "paper" is the paper's figure for the method (its tables 1 and 2). "authors' code" is that code,
run again on the same graphs and splits, on one NVIDIA H200; it drops isolated nodes, which changes CiteSeer's
test set. "paper's probe" and "tuned probe" are the two protocols of `spgcl eval`. Supervised methods are
scored by their own predictions; a retraining of theirs is one model a split, or ten where there is one split.
Time and memory are those of training and embedding, without the probes: mean seconds where a training had the
machine for itself, and the largest peak on CUDA where it was taken apart from what the process held before.

Command: `python benchmarks/scores.py [--method NAME] [--preset NAME] GRAPH...`

### All methods, paper's probe

The paper's figure is in parentheses; a score more than two points below it is in bold, and the method's page
says what is known of the cause. Of the presets and the defaults of a method, the one with the best validation
score on the graph is shown. Methods without training, which have no figure in the paper's tables, come first;
GraphCL has none either. SP-GCL's last row is the best of the settings that every method has as many of:
on {more} its preset `validated` comes from further rounds, and its
defaults were chosen on these graphs from settings beyond the search.

{search_tables.budget_text(searched)} {search_tables.further_text(searched)}

Some of the paper's figures are not its own measurements: those of GAE, of DeepWalk (but for Photo) and of MLP
(there called raw features) on the Amazon and Coauthor graphs stand to the hundredth in the tables of other
papers (GAE on Computers: 85.27 ± 0.19), whose probe is a regularised logistic regression. The tuned probe is
the one to compare them with.

{score_tables.side_by_side(named, "paper")}

### All methods, tuned probe

The same methods under a probe whose strength is chosen for each. The setting shown is the one that is best on
validation nodes under this probe, so here and there another than above. The paper has no such figures, those
in parentheses are again its own. Some of SP-GCL's figures were taken with an earlier solver of this probe,
which stopped a little early.

{score_tables.side_by_side(named, "tuned")}

### Where SP-GCL stands

Its place among the methods that need no labels, those without training included, with the row of equal budget
from the tables above; and the best of the others, with how many points SP-GCL is ahead of it. Where baselines
had further rounds, the budget is equal for all but them.

{score_tables.places_table(named)}

### A tenth of the nodes labelled

Ten random splits (10/10/80) in place of the public one, which labels twenty nodes a class: so GRACE's own
paper scores the citation graphs, and its figures, by a regularised logistic regression, are of its own probe.

Command: `python benchmarks/scores.py --tenths --method grace --preset published GRAPH...`

{score_tables.tenths_table(tenths)}

{score_tables.full_tables(scores)}

## Search for the preset `validated`

Validation scores under the paper's probe, mean over the seeds in parentheses. The best setting is the one
with the highest mean among those trained with all seeds; it is the preset `validated`. "published" is the
defaults where a graph has no published setting. Test scores are neither written nor looked at by the search.

Command: `python benchmarks/search.py [--method NAME] GRAPH...`

{search_tables.found_table(searched, table, NO_RESULTS)}

### The same for the baselines

{search_tables.baseline_table(searched, table, NO_RESULTS)}

### Search space

{search_tables.space_text(searched, table)}

### Candidates for the defaults

Draws and changes that were trained alike on several graphs, one training a graph: how far a setting falls
behind the best of each graph, in points of validation score.

{search_tables.candidate_table(searched, table, NO_RESULTS)}
"""


def method_section(
    name: str, best: dict[str, dict[str, list[Record]]], searched: Sequence[Record], scores: Sequence[Record]
) -> str:
    """What a method's page says of its scores, and of how they were looked for."""
    parts = [score_tables.method_table(name, best), search_tables.searched_text(searched, name, scores)]
    return "\n\n".join(part for part in parts if part)


def replaced(text: str, name: str, content: str, path: Path) -> str:
    """A document with what stands between the markers of a block replaced."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    if text.count(begin) != 1 or text.count(end) != 1:
        raise SystemExit(f"{path}: needs the markers {begin} and {end}, once each")
    pattern = re.escape(begin) + r".*?" + re.escape(end)
    return re.sub(pattern, lambda _: f"{begin}\n{content}\n{end}", text, flags=re.DOTALL)


def documents(root: Path, results: Path) -> dict[Path, str]:
    """Every document with generated parts, as it should be."""
    scores, searched = read_lines(results / "scores.jsonl"), read_lines(results / "search.jsonl")
    named = search_tables.plainly_named(scores, searched)
    best = score_tables.best_of(named, "paper")
    measured = {name: read_lines(results / f"{name}.jsonl") for name in speed_tables.SECTIONS}
    blocks = {
        "README.md": {
            "results": score_tables.summary_table(scores, "spgcl"),
            "speed": speed_tables.speed_summary(measured["speed"], table, NO_RESULTS),
        },
        "docs/methods/spgcl.md": {
            "results": score_tables.summary_table(scores, "spgcl"),
            "search": search_tables.found_table(searched, table, NO_RESULTS),
        },
        **{
            f"docs/methods/{name}.md": {"scores": method_section(name, best, searched, scores)}
            for name in METHODS
            if name != "spgcl"
        },
        "docs/methods/node2vec.md": {
            "scores": method_section("node2vec", best, searched, scores),
            "walks": score_tables.walks_table(read_lines(results / "walks.jsonl")),
        },
        "docs/data.md": {"datasets": dataset_table(), "differences": difference_table()},
        "docs/speed.md": {
            name: section(measured[name], table, NO_RESULTS)
            for name, section in speed_tables.SECTIONS.items()
        },
    }
    made = {
        root / "docs" / "results.md": results_page(
            scores, named, searched, read_lines(results / "tenths.jsonl")
        ),
        root / PRESETS: search_tables.presets_text(searched),
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
    parser.add_argument("--results", type=Path, default=ROOT / "results")
    parser.add_argument("--root", type=Path, default=ROOT, help="folder of the documents")
    arguments = parser.parse_args()
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
            print(f"wrote {name}")
    if arguments.check and stale:
        sys.exit(1)


if __name__ == "__main__":
    main()
