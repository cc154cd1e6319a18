"""The page of several runs: scores, curves, and the settings in which they differ."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from spgcl.evaluation.scores import METRICS, PROTOCOLS
from spgcl.report.charts import Item, section, strip, strips, table, text
from spgcl.report.curves import training_charts
from spgcl.report.words import DIFFERENCE_COLUMNS, deviation_over, difference_cells
from spgcl.runs.paired import chosen, differences, task_of
from spgcl.runs.record import Run

_COLUMNS = ["run", "graph", "method", "score", "scored by", "k-NN", "NMI", "link AUC", "train s", "peak MiB"]


def compare_runs(entries: Sequence[tuple[Path, Run, dict[str, Any] | None]]) -> Item:
    """The page of several runs as plain data, from the folder, record and `eval.json` (or None) of each."""
    names = run_names([folder for folder, _, _ in entries])
    runs = {name: run for name, (_, run, _) in zip(names, entries, strict=True)}
    scores = {name: record for name, (_, _, record) in zip(names, entries, strict=True)}
    charts = training_charts(runs)
    return {
        "title": f"{len(runs)} runs compared",
        "sections": [
            section("scores", "Scores", _scores(runs, scores)),
            section("training", "Training", charts or [text("Nothing was trained in these runs.")]),
            section("settings", "Settings that differ", [_differing(runs)]),
        ],
        "map": None,
    }


def run_names(folders: Sequence[Path]) -> list[str]:
    """The shortest ends of the paths that are all different."""
    parts = [folder.absolute().parts for folder in folders]
    for length in range(1, max(map(len, parts)) + 1):
        names = ["/".join(part[-length:]) for part in parts]
        if len(set(names)) == len(names):
            return names
    return [f"{part[-1]} ({number})" for number, part in enumerate(parts, 1)]


def _scores(runs: Mapping[str, Run], scores: Mapping[str, dict[str, Any] | None]) -> list[Item]:
    # Only scores of the same labels, splits, metric and probe share a chart.
    comparable: dict[tuple[str, ...], list[Item]] = {}
    for name, record in scores.items():
        if record and "mean" in record:
            task = (runs[name].dataset, record["metric"], record["protocol"], record.get("task", ""))
            tests = [score["test"] for score in record["splits"]]
            comparable.setdefault(task, []).append(strip(name, tests, record["mean"], record["std"]))
    charts = [
        strips(f"{dataset}, every split, {PROTOCOLS[protocol]}", rows, f"{METRICS[metric]}, percent")
        for (dataset, metric, protocol, _), rows in comparable.items()
    ]
    rows = [_row(name, run, scores[name] or {}) for name, run in runs.items()]
    return [*charts, table(_COLUMNS, rows, "All runs"), *_paired(scores)]


def _paired(scores: Mapping[str, dict[str, Any] | None]) -> list[Item]:
    """Per task, what the test scores of runs differ by from that of the run which validation chooses."""
    tasks: dict[tuple[str, ...], dict[str, Any]] = {}
    for name, record in scores.items():
        if record and "mean" in record:
            tasks.setdefault(task_of(record), {})[name] = record
    items = []
    for (dataset, *_), records in tasks.items():
        best = chosen(records)
        rows = [[name, *difference_cells(gap)] for name, gap in differences(records, best).items()]
        if rows:
            title = f"{dataset}: test scores minus those of {best}, which validation chooses"
            items.append(table(DIFFERENCE_COLUMNS, rows, title))
    return items


def _row(name: str, run: Run, record: Mapping[str, Any]) -> list[str]:
    known = [name, run.dataset, run.method, "-", "-"]
    if "mean" in record:
        known[3] = f"{record['mean']:.2f} ± {record['std']:.2f} ({deviation_over(record)})"
        known[4] = PROTOCOLS[record["protocol"]]
    others = [
        record.get("knn", {}).get("mean"),
        record.get("clustering", {}).get("nmi"),
        record.get("link_prediction", {}).get("auc"),
        run.seconds.get("train"),
    ]
    cells = ["-" if value is None else f"{value:.2f}" for value in others]
    return [*known, *cells, f"{run.peak_memory_mib:,.0f}"]


def _differing(runs: Mapping[str, Run]) -> Item:
    """One row for everything that is not the same in all runs."""
    described = [_described(run) for run in runs.values()]
    rows = []
    for key in dict.fromkeys(key for one in described for key in one):
        values = [one.get(key, "-") for one in described]
        if len(set(values)) > 1:
            rows.append([key, *values])
    if not rows:
        return text("All settings of these runs are the same.")
    return table(["setting", *runs], rows)


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
