"""Write the tables of README.md and docs/ from results/; --check only says (exit 1) which are stale.

python benchmarks/tables.py
python benchmarks/tables.py --check
"""

import argparse
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import search_tables
import speed_tables

from spgcl.datasets.entries import entries
from spgcl.report.paper import paper_figure

ROOT = Path(__file__).parents[1]
NO_RESULTS = "No results yet."

# The authors' code, run again on one NVIDIA H200 on the same graphs and splits; CiteSeer without its isolated
# nodes, which that code drops.
AUTHORS_CODE = {"cora": 81.97, "citeseer": 68.51, "pubmed": 79.63, "chameleon": 67.11, "squirrel": 51.98}

PRESETS = ("published", "validated", "paper", None)
PROTOCOLS = {"paper": "paper's probe", "tuned": "tuned probe", "predictions": "own predictions"}
Record = dict[str, Any]
Group = tuple[str, str | None, str]


def read_lines(path: Path) -> list[Record]:
    """The records of a results file; none when it is not there yet."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def grouped(records: Iterable[Record]) -> dict[Group, dict[str, list[Record]]]:
    """Trainings by (method, preset, what was set by hand) and graph, the later of two equal ones.

    Where a setting was trained on several devices, the one with most retrainings speaks for it.
    """
    latest: dict[tuple[Group, str, str], dict[int, Record]] = defaultdict(dict)
    for record in records:
        given = ", ".join(f"{name}={value}" for name, value in sorted(record.get("given", {}).items()))
        group = (record["method"], record["preset"], given)
        latest[group, record["dataset"], record["device"]][record["seed"]] = record
    found: dict[Group, dict[str, list[Record]]] = defaultdict(dict)
    for (group, dataset, device), by_seed in sorted(latest.items(), key=lambda item: str(item[0])):
        trainings = [by_seed[seed] for seed in sorted(by_seed)]
        before = found[group].get(dataset, [])
        if (len(trainings), device != "cpu") > (len(before), bool(before) and before[0]["device"] != "cpu"):
            found[group][dataset] = trainings
    return dict(sorted(found.items(), key=_group_order))


def _group_order(item: tuple[Group, Any]) -> tuple[str, int, str, str]:
    method, preset, given = item[0]
    return method, PRESETS.index(preset) if preset in PRESETS else len(PRESETS), preset or "", given


def score(trainings: Sequence[Record], protocol: str) -> str:
    """Mean test score over retrainings and, where there are two or more, their standard deviation."""
    tests = [training["scores"][protocol]["test"] for training in trainings]
    return f"{fmean(tests):.2f} ± {pstdev(tests):.2f}" if len(tests) > 1 else f"{tests[0]:.2f}"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, text_columns: int = 1) -> str:
    """A Markdown table, its columns right-aligned after the first `text_columns`."""
    rule = ["---" if place < text_columns else "---:" for place in range(len(columns))]
    lines = [columns, rule, *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def summary_table(records: Sequence[Record], method: str) -> str:
    """Paper, authors' code and every preset of a method side by side, under the paper's probe."""
    groups = {
        key: value
        for key, value in grouped(records).items()
        if key[0] == method and key[1] in PRESETS and not key[2]
    }
    if not groups:
        return NO_RESULTS
    datasets = [name for name in _order(groups) if any(name in graphs for graphs in groups.values())]
    rows = [
        [
            name,
            *_quoted("spgcl", name),
            *[score(graphs[name], "paper") if name in graphs else "-" for graphs in groups.values()],
        ]
        for name in datasets
    ]
    counts = sorted({len(trainings) for graphs in groups.values() for trainings in graphs.values()})
    number = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    titles = [_title(preset, "") for _, preset, _ in groups]
    auc = [name for name in datasets if _metric(name) == "ROC-AUC"]
    metric = f"ROC-AUC on {', '.join(auc)}, accuracy elsewhere" if auc else "accuracy"
    caption = (
        f"Test scores in percent ({metric}) under the paper's probe: mean over splits and full retrainings "
        f'({number}), ± the standard deviation over retrainings. "paper" is the paper\'s figure, '
        '"authors\' code" what that code scored when it was run again.'
    )
    columns = ["graph", "paper", "authors' code", *titles]
    return f"{caption}\n\n{table(columns, rows)}"


def full_tables(records: Sequence[Record]) -> str:
    """One section a method and preset: both probes, number of retrainings, time, memory."""
    sections = []
    for (method, preset, given), graphs in grouped(records).items():
        rows = []
        for name in [name for name in _order({(method, preset, given): graphs}) if name in graphs]:
            trainings = graphs[name]
            rows.append(
                [
                    name,
                    _metric(name),
                    trainings[0]["processor"],
                    *_quoted(method, name),
                    *[score(trainings, protocol) for protocol in trainings[0]["scores"]],
                    str(len(trainings)),
                    _seconds(trainings),
                    f"{max(training['peak_memory_mib'] for training in trainings):.0f}",
                ]
            )
        columns = ["graph", "metric", "processor", "paper", "authors' code"]
        columns += [PROTOCOLS[protocol] for protocol in trainings[0]["scores"]]
        columns += ["retrainings", "fit s", "peak MiB"]
        heading = f"### {method}, {_title(preset, given)}"
        sections.append(f"{heading}\n\n{table(columns, rows, text_columns=3)}")
    return "\n\n".join(sections) or NO_RESULTS


def _seconds(trainings: Sequence[Record]) -> str:
    """Mean time of the trainings that had the machine for themselves."""
    alone = [training["seconds"]["fit"] for training in trainings if training.get("workers", 1) == 1]
    return f"{fmean(alone):.1f}" if alone else "-"


def _title(preset: str | None, given: str) -> str:
    return (f"preset `{preset}`" if preset else "defaults") + (f", {given}" if given else "")


def _quoted(method: str, name: str) -> list[str]:
    """The paper's figure for a method, and what the authors' code, which has SP-GCL alone, scored again."""
    paper = paper_figure(method, name)
    authors = AUTHORS_CODE.get(name) if method == "spgcl" else None
    figures = [paper.mean if paper else None, authors]
    return ["-" if figure is None else f"{figure:.2f}" for figure in figures]


def _metric(name: str) -> str:
    return "ROC-AUC" if name in entries() and entries()[name].metric == "roc_auc" else "accuracy"


def _order(groups: dict[Group, dict[str, list[Record]]]) -> list[str]:
    present = {name for graphs in groups.values() for name in graphs}
    return [*[name for name in entries() if name in present], *sorted(present - set(entries()))]


def dataset_table() -> str:
    """The benchmark graphs as the table of entries has them."""
    rows = [
        [
            f"`{name}`",
            _metric(name),
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


def results_page(scores: Sequence[Record], searched: Sequence[Record]) -> str:
    """docs/results.md."""
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
machine for itself, and the largest peak.

Command: `python benchmarks/scores.py [--preset NAME] GRAPH...`

{full_tables(scores)}

## Search for the preset `validated`

Validation scores under the paper's probe, mean over the seeds in parentheses. The best setting is the one
with the highest mean among those trained with all seeds. Where it is not the published one, it is the preset
`validated`. Test scores are neither written nor looked at by the search.

Command: `python benchmarks/search.py GRAPH...`

{search_tables.found_table(searched, table, NO_RESULTS)}

### Search space

{search_tables.space_text(table)}

### Candidates for the defaults

Draws and changes that were trained alike on several graphs, one training a graph: how far a setting falls
behind the best of each graph, in points of validation score.

{search_tables.candidate_table(searched, table, NO_RESULTS)}
"""


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
    blocks = {
        "README.md": {"results": summary_table(scores, "spgcl")},
        "docs/methods/spgcl.md": {
            "results": summary_table(scores, "spgcl"),
            "search": search_tables.found_table(searched, table, NO_RESULTS),
        },
        "docs/data.md": {"datasets": dataset_table(), "differences": difference_table()},
        "docs/speed.md": {
            name: section(read_lines(results / f"{name}.jsonl"), table, NO_RESULTS)
            for name, section in speed_tables.SECTIONS.items()
        },
    }
    made = {root / "docs" / "results.md": results_page(scores, searched)}
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
