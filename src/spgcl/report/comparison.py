"""The page of several runs: scores, curves, and the settings in which they differ."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from spgcl.evaluation.scores import METRICS, PROTOCOLS
from spgcl.report.charts import Item, section, shorten, strip, strips, table, text
from spgcl.report.curves import training_charts
from spgcl.report.summary import deviation_over
from spgcl.runs.record import Run


def compare_runs(entries: Sequence[tuple[Path, Run, dict[str, Any] | None]]) -> Item:
    """Everything that the page of several runs shows, as plain data for `write_page`.

    Args:
        entries: Folder, record and `eval.json` (or None) of each run.
    """
    names = run_names([folder for folder, _, _ in entries])
    runs = {name: run for name, (_, run, _) in zip(names, entries, strict=True)}
    scores = {name: record for name, (_, _, record) in zip(names, entries, strict=True)}
    charts = training_charts(runs)
    return {
        "title": f"{len(runs)} runs compared",
        "sections": [
            section("scores", "Scores", _scores(runs, scores)),
            section("training", "Training", charts or [text("None of these runs has anything to train.")]),
            section("settings", "Settings that differ", [_differing(runs)]),
        ],
        "map": None,
    }


def run_names(folders: Sequence[Path]) -> list[str]:
    """The shortest ends of the paths that tell all folders apart."""
    parts = [folder.absolute().parts for folder in folders]
    longest = max(map(len, parts))
    for length in range(1, longest + 1):
        names = ["/".join(part[-length:]) for part in parts]
        if len(set(names)) == len(names):
            return names
    return [f"{'/'.join(part[-1:])} ({place})" for place, part in enumerate(parts, 1)]


def _scores(runs: Mapping[str, Run], scores: Mapping[str, dict[str, Any] | None]) -> list[Item]:
    items = []
    scored = {name: record for name, record in scores.items() if record and "mean" in record}
    tasks = {name: _task(runs[name], record) for name, record in scored.items()}
    for task in dict.fromkeys(tasks.values()):
        rows = [
            strip(name, [score["test"] for score in record["splits"]], record["mean"], record["std"])
            for name, record in scored.items()
            if tasks[name] == task
        ]
        title = f"{task.dataset}, every split, {task.scored_by}"
        items.append(strips(title, rows, f"{METRICS[task.metric]}, percent"))
    columns = ["run", "graph", "method", "score", "scored by", "k-NN", "k-means nmi", "link auc", "train s"]
    columns.append("peak MiB")
    items.append(table(columns, [_row(name, runs[name], scores[name] or {}) for name in runs], "All runs"))
    return items


class _Task(NamedTuple):
    """What scores have to have in common to stand beside each other."""

    dataset: str
    metric: str
    scored_by: str
    digest: str


def _task(run: Run, record: Mapping[str, Any]) -> _Task:
    return _Task(run.dataset, record["metric"], _scored_by(record), record.get("task", ""))


def _scored_by(record: Mapping[str, Any]) -> str:
    return PROTOCOLS.get(record.get("protocol", ""), "-")


def _row(name: str, run: Run, record: Mapping[str, Any]) -> list[str]:
    score = (
        f"{record['mean']:.2f} ± {record['std']:.2f} (over {deviation_over(record)})"
        if "mean" in record
        else "-"
    )
    others = [
        record.get("knn", {}).get("mean"),
        record.get("clustering", {}).get("nmi"),
        record.get("link_prediction", {}).get("auc"),
        run.seconds.get("train"),
    ]
    cells = ["-" if value is None else f"{value:.2f}" for value in others]
    known = [name, run.dataset, run.method, score, _scored_by(record)]
    return [*known, *cells, f"{run.peak_memory_mib:,.0f}"]


def _differing(runs: Mapping[str, Run]) -> Item:
    """One row for everything that is not the same in all runs."""
    told = {name: _told(run) for name, run in runs.items()}
    rows = []
    for key in dict.fromkeys(key for values in told.values() for key in values):
        values = [values.get(key, "-") for values in told.values()]
        if len(set(values)) > 1:
            rows.append([key, *map(shorten, values)])
    if not rows:
        return text("These runs were made in the same way.")
    return table(["setting", *runs], rows)


def _told(run: Run) -> dict[str, str]:
    """What decides a run, in words."""
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
