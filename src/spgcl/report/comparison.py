"""The page of several runs: scores, maps, curves, and the settings in which they differ."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from spgcl.evaluation.scores import METRICS, PROTOCOLS
from spgcl.report.charts import Item, facts, section, strip, strips, table, text
from spgcl.report.curves import training_charts
from spgcl.report.material import Material
from spgcl.report.projected import Projection
from spgcl.report.side_by_side import side_by_side
from spgcl.report.verdict import Rows, scored_strip, scored_strips, without_training
from spgcl.report.words import NO_CHOICE, comparison_cell, criteria_in, deviation_over, judgement
from spgcl.runs.held_out import criteria_of
from spgcl.runs.paired import chosen, differences, task_of
from spgcl.runs.record import Run

_COLUMNS = ["run", "score", "scored by", "graph", "method", "k-NN", "NMI", "link AUC", "train s", "peak MiB"]


@dataclass(frozen=True)
class Entry:
    """One of the runs.

    Attributes:
        evaluation: `eval.json`, or None if the run is not evaluated.
        material: What a page of its own would be made from; None if its graph cannot be read.
        name: By which the page calls it.
        colour: Its index in the palette, throughout the page.
    """

    folder: Path
    run: Run
    evaluation: dict[str, Any] | None = None
    material: Material | None = None
    name: str = ""
    colour: int = 0


def compare_runs(given: Sequence[Entry], projection: Projection, say: Callable[[str], None]) -> Item:
    """The page of several runs as plain data; `say` is called with what is being done, in a few words."""
    names = run_names([entry.folder for entry in given])
    entries = [
        replace(entry, name=name, colour=colour)
        for colour, (entry, name) in enumerate(zip(given, names, strict=True))
    ]
    runs = {entry.name: entry.run for entry in entries}
    charts = training_charts(runs)
    map_, maps = side_by_side(entries, projection, say)
    return {
        "title": f"{len(runs)} runs compared",
        "sections": [
            _scores(entries, say),
            *maps,
            section("training", "Training", charts or [text("Nothing was trained in these runs.")]),
            section("settings", "Settings that differ", [_differing(runs)]),
        ],
        "map": map_,
    }


def run_names(folders: Sequence[Path]) -> list[str]:
    """The shortest ends of the paths that are all different."""
    parts = [folder.absolute().parts for folder in folders]
    for length in range(1, max(map(len, parts)) + 1):
        names = ["/".join(part[-length:]) for part in parts]
        if len(set(names)) == len(names):
            return names
    return [f"{part[-1]} ({number})" for number, part in enumerate(parts, 1)]


def _scores(entries: Sequence[Entry], say: Callable[[str], None]) -> Item:
    # Only scores of the same labels, splits, metric and probe share a chart.
    tasks: dict[tuple[str, ...], list[Entry]] = {}
    for entry in entries:
        if entry.evaluation and "mean" in entry.evaluation:
            tasks.setdefault(task_of(entry.evaluation), []).append(entry)
    words, charts = [], []
    for (dataset, metric, protocol, _), scored in tasks.items():
        rows = _without_training(scored, say)
        words += _verdict(dataset, scored, rows)
        dots = [scored_strip(_named(entry), _record(entry), colour=entry.colour) for entry in scored]
        title = f"{dataset}, every split, {PROTOCOLS[protocol]}"
        unit = f"{METRICS[metric]}, percent"
        charts += [strips(title, [*dots, *scored_strips(rows)], unit), *_paired(scored, rows)]
    columns, cells = _filled([_row(entry.name, entry.run, entry.evaluation or {}) for entry in entries])
    tables = [table(columns, cells, "All runs", runs="rows"), *_without_labels(entries)]
    return section("scores", "Scores", [*charts, *tables], " ".join(words))


def _filled(rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """The columns of the table of all runs that some run has a value for."""
    kept = [index for index in range(len(_COLUMNS)) if any(row[index] != "-" for row in rows)]
    return [_COLUMNS[index] for index in kept], [[row[index] for index in kept] for row in rows]


def _without_labels(entries: Sequence[Entry]) -> list[Item]:
    """What runs can be compared by without labels, if some have no scores."""
    rows = {entry.name: criteria_of(_record(entry)) for entry in entries}
    columns = criteria_in([*rows.values()])
    if "held_out_edges" not in columns:
        return []
    cells = [[name, *(comparison_cell(row, column) for column in columns)] for name, row in rows.items()]
    named = ["run", *(column for column, _ in columns.values())]
    meanings = dict(columns.values())
    return [
        table(named, cells, "Without labels", runs="rows"),
        facts(meanings, "What they say"),
        text(NO_CHOICE),
    ]


def _without_training(scored: Sequence[Entry], say: Callable[[str], None]) -> Rows:
    """What takes no training on a task, by the probe of its runs; none if no graph can be read."""
    known = [entry.material for entry in scored if entry.material and entry.material.splits]
    return without_training(known[0], say, "raw", "smoothed") if known else {}


def _verdict(dataset: str, scored: Sequence[Entry], rows: Rows) -> list[str]:
    """What validation chooses and what that is worth, and which runs do not even beat the majority class."""
    records = {entry.name: _record(entry) for entry in scored}
    best = chosen(records)
    words = [f"{dataset}: validation chooses {best}."]
    words += judgement({**records[best], "baselines": rows})
    majority = rows.get("majority", {}).get("mean", -1)
    worst = [name for name, record in records.items() if name != best and record["mean"] <= majority]
    return [*words, f"Not above the majority class: {', '.join(worst)}."] if worst else words


def _paired(scored: Sequence[Entry], rows: Rows) -> list[Item]:
    """By what test scores of runs and of features differ from those of the run that validation chooses."""
    records = {entry.name: _record(entry) for entry in scored}
    best = chosen(records)
    records |= {f"{name} features": row for name, row in rows.items() if name != "majority" and "mean" in row}
    colours = {entry.name: entry.colour for entry in scored}
    dots = []
    for name, gap in differences(records, best).items():
        words = f"{gap['mean']:+.2f}"
        if gap["pairs"] > 1:
            words += f" ± {gap['std']:.2f}, above in {gap['above']} of {gap['pairs']}"
        gaps = [one["test"] - other["test"] for one, other in _pairs(records[name], records[best])]
        dots.append(strip(name, gaps, gap["mean"], None, colour=colours.get(name), words=words))
    if not dots:
        return []
    title = f"{scored[0].run.dataset}: differences from {best} on the same splits and starts"
    return [strips(title, dots, "test score minus that of the run which validation chooses, percent", (0, 0))]


def _pairs(record: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    return zip(record["splits"], other["splits"], strict=True)


def _record(entry: Entry) -> dict[str, Any]:
    return entry.evaluation or {}


def _named(entry: Entry) -> str:
    own = _record(entry)["protocol"] == "predictions"
    return f"{entry.name} ({PROTOCOLS['predictions']})" if own else entry.name


def _row(name: str, run: Run, record: Mapping[str, Any]) -> list[str]:
    score, by = "-", "-"
    if "mean" in record:
        score = f"{record['mean']:.2f}" + (f" ± {record['std']:.2f}" if len(record["splits"]) > 1 else "")
        by = f"{PROTOCOLS[record['protocol']]}, {deviation_over(record)}"
    others = [
        record.get("knn", {}).get("mean"),
        record.get("clustering", {}).get("nmi"),
        record.get("link_prediction", {}).get("auc"),
        run.seconds.get("train"),
    ]
    cells = ["-" if value is None else f"{value:.2f}" for value in others]
    return [name, score, by, run.dataset, run.method, *cells, f"{run.peak_memory_mib:,.0f}"]


def _differing(runs: Mapping[str, Run]) -> Item:
    """One row for everything that several runs have, not all of them the same."""
    described = [_described(run) for run in runs.values()]
    rows = []
    for key, count in Counter(key for one in described for key in one).items():
        values = [one.get(key, "-") for one in described]
        if count > 1 and len(set(values)) > 1:
            rows.append([key, *values])
    if not rows:
        return text("All settings of these runs are the same.")
    return table(["setting", *runs], rows, runs="columns")


def _described(run: Run) -> dict[str, str]:
    """Everything that determines a run."""
    versions = {f"version of {name}": version for name, version in run.versions.items()}
    decided = {
        "graph": run.dataset,
        "graph digest": run.graph["digest"][:16],
        "method": run.method,
        "preset": str(run.preset or "-"),
        "seed": str(run.seed),
        "device": run.device,
        "threads": str(run.threads),
        "precision": run.precision,
        "deterministic": str(run.deterministic),
        "held-out edges": f"{run.hold_out_edges:g}",
        "status": run.status,
    }
    return {**decided, **{name: str(value) for name, value in run.settings.items()}, **versions}
