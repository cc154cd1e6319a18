"""The page of a run, or of several compared, from their folders."""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

from spgcl.engine.device import scoring_device
from spgcl.errors import InputError, note
from spgcl.evaluation.task import task_digest
from spgcl.report.columns import read_columns
from spgcl.report.comparison import compare_runs
from spgcl.report.material import Material
from spgcl.report.page import require_plotly, require_replaceable, write_page
from spgcl.report.single import describe_run
from spgcl.report.tensorboard import require_tensorboard, write_tensorboard
from spgcl.runs.evaluate import evaluate_run, is_as_fitted, require_same_nodes, run_folders, write_evaluation
from spgcl.runs.record import Run, load_held_out, read_results, read_run
from spgcl.runs.sources import Loaded, resolve_recorded

# What `describe_run` says it is doing, at most; a progress line needs to know.
_STAGES = 11
# Opened with a title and the number of stages; gives a function that is called with each stage's name.
Progress = Callable[[str, int], AbstractContextManager[Callable[[str], None]]]


@contextmanager
def silent(title: str, stages: int) -> Iterator[Callable[[str], None]]:
    """No progress."""
    del title, stages
    yield lambda _: None


@dataclass(frozen=True)
class Wanted:
    """What a page is to be made from and with, besides its runs; see the options of `spgcl report`."""

    labels: Path | None = None
    nodes: Path | None = None
    id_column: str | None = None
    projection: Literal["auto", "umap", "pca"] = "auto"
    tensorboard: bool = False
    device: str = "auto"


def write_report(
    runs: list[Path], out: Path | None, wanted: Wanted, progress: Progress = silent
) -> dict[str, Any]:
    """Write the page of a run, or of several, and say what was written where."""
    require_plotly()
    if wanted.tensorboard:
        require_tensorboard()
    folders = list(dict.fromkeys(folder for run in runs for folder in run_folders(run)))
    path = out or (runs[0] / "report.html" if len(runs) == 1 else Path("comparison.html"))
    require_replaceable(path)
    if len(folders) == 1:
        return _describe(folders[0], path, wanted, progress)
    if wanted.nodes:
        raise InputError("--nodes colours the map of one run; a comparison has none")
    return _compare(folders, path, wanted, progress)


def _describe(folder: Path, path: Path, wanted: Wanted, progress: Progress = silent) -> dict[str, Any]:
    with progress(str(folder), _STAGES) as say:
        material = _material(folder, wanted, say)
        content = describe_run(material, projection=wanted.projection, say=say)
        say("writing")
        size = write_page(path, content)
        record = {
            "report": str(path),
            "runs": [str(folder)],
            "nodes": material.graph.num_nodes,
            "shown": len(material.shown),
            "projection": content["map"]["projection"],
            "bytes": size,
        }
        if wanted.tensorboard:
            record["tensorboard"] = [str(write_tensorboard(folder, material.run, material))]
    return record


def _compare(folders: list[Path], path: Path, wanted: Wanted, progress: Progress = silent) -> dict[str, Any]:
    entries = []
    with progress(f"{len(folders)} runs", len(folders)) as say:
        for folder in folders:
            say(folder.name)
            run = read_run(folder)
            # A graph is read when it is asked for, and once.
            load = cache(partial(resolve_recorded, run.graph, wanted.labels))
            entries.append((folder, run, _evaluated(folder, run, load, wanted)))
        size = write_page(path, compare_runs(entries))
    record = {"report": str(path), "runs": [str(folder) for folder in folders], "bytes": size}
    if wanted.tensorboard:
        record["tensorboard"] = [str(write_tensorboard(folder, run)) for folder, run, _ in entries]
    return record


def _material(folder: Path, wanted: Wanted, say: Callable[[str], None]) -> Material:
    say("reading")
    run, vectors, node_ids = read_results(folder)
    loaded = resolve_recorded(run.graph, wanted.labels)
    require_same_nodes(node_ids, loaded.graph, folder, run)
    if not is_as_fitted(loaded.graph, run):
        note(f"{run.graph['source']} has changed since {folder} was fitted; the page shows it as it is now")
    columns = read_columns(wanted.nodes, loaded.graph, id_column=wanted.id_column) if wanted.nodes else ()
    say("evaluating")
    evaluation = _evaluated(folder, run, lambda: loaded, wanted)
    scored = evaluation is not None and "mean" in evaluation
    return Material(
        folder=folder,
        run=run,
        graph=loaded.graph,
        vectors=vectors,
        labels=loaded.labels,
        class_names=loaded.class_names,
        splits=loaded.splits if scored else None,
        metric=loaded.metric,
        evaluation=evaluation,
        columns=columns,
        device=str(scoring_device(wanted.device)),
    )


def _evaluated(folder: Path, run: Run, load: Callable[[], Loaded], wanted: Wanted) -> dict[str, Any] | None:
    """What `spgcl eval` found or, where it did not run or other labels are given, finds now."""
    path, protocol = folder / "eval.json", "paper"
    if path.exists():
        try:
            found = dict(json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, TypeError) as error:
            raise InputError(f"{path} cannot be read ({error}); run spgcl eval {folder} again") from None
        if wanted.labels is None:
            if _is_of(found, load):
                return found
            note(f"{path} is of other labels or splits than the run's own: evaluated again")
        protocol = "tuned" if found.get("protocol") == "tuned" else "paper"
    try:
        loaded = load()
        if loaded.labels is None and load_held_out(folder) is None:
            return None
        record = evaluate_run(folder, run, loaded, protocol, wanted.device)
        write_evaluation(folder, record)
        return record
    except InputError as error:
        note(f"{folder} is not evaluated: {error}")
        return None


def _is_of(found: dict[str, Any], load: Callable[[], Loaded]) -> bool:
    """Whether an evaluation is of the labels and splits that the page will show."""
    if "task" not in found:
        return True
    try:
        loaded = load()
    except InputError:
        return True
    if loaded.labels is None or loaded.splits is None:
        return True
    return bool(found["task"] == task_digest(loaded.graph, loaded.labels, loaded.splits))
