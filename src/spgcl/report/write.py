"""The page of a run, or of several compared, from their folders."""

import shlex
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from spgcl.engine.device import scoring_device
from spgcl.errors import InputError, Note, note
from spgcl.evaluation.checks import task_digest
from spgcl.report.columns import read_columns
from spgcl.report.comparison import Entry, compare_runs
from spgcl.report.material import Material
from spgcl.report.page import require_plotly, require_replaceable, write_page
from spgcl.report.single import describe_run
from spgcl.report.tensorboard import require_tensorboard, write_tensorboard
from spgcl.runs.evaluate import (
    Asked,
    evaluate_run,
    labelled,
    require_same_nodes,
    run_folders,
    stored_evaluation,
    write_evaluation,
)
from spgcl.runs.folder import require_own
from spgcl.runs.record import Run, deriving, load_held_out, read_results, read_run
from spgcl.runs.sources import Loaded, is_dataset, require_loadable
from spgcl.scale.store import Store

# Nodes on the maps of a comparison of methods; the neighbours of more take longer than quick methods do.
MOST_MAPPED = 20_000
# Called with a few words on what is being done.
Say = Callable[[str], None]


def silent(words: str) -> None:
    """Report no progress."""
    del words


@dataclass(frozen=True)
class Wanted:
    """What is wanted of a page besides its runs; see the options of `spgcl report`."""

    labels: Any = None
    label: str | None = None
    nodes: Path | None = None
    id_column: str | None = None
    projection: Literal["auto", "umap", "pca"] = "auto"
    tensorboard: bool = False
    device: str = "auto"
    protocol: str | None = None


def write_report(runs: list[Path], out: Path | None, wanted: Wanted, say: Say = silent) -> dict[str, Any]:
    """Write the page of a run, or of several, and return what was written where."""
    require_plotly()
    folders = list(dict.fromkeys(folder for run in runs for folder in run_folders(run)))
    if wanted.tensorboard:
        require_tensorboard()
        for folder in folders:
            require_own(folder / "tensorboard")
    path = out or (runs[0] / "report.html" if len(runs) == 1 else Path("comparison.html"))
    require_replaceable(path)
    if len(folders) == 1:
        return _describe(folders[0], path, wanted, say)
    return _compare(folders, path, wanted, say)


def write_comparison(record: dict[str, Any], say: Say = silent) -> str | None:
    """Write the page of a comparison of methods beside their runs; None without Plotly."""
    folders = [Path(row["run"]) for row in record["methods"] if "left_out" not in row]
    if not folders:
        return None
    try:
        require_plotly()
    except InputError as error:
        say(f"no page: {error}")
        return None
    page = folders[0].parent / "comparison.html"
    runs = [folder for path in folders for folder in run_folders(path)]
    entries = [Entry(folder, read_run(folder), stored_evaluation(folder)) for folder in runs]
    if (count := entries[0].run.graph["num_nodes"]) > MOST_MAPPED:
        command = shlex.join(["spgcl", "report", *map(str, folders)])
        say(f"the page has no maps of {count:,} nodes; {command} draws them")
    else:
        # Principal components: training several methods took long enough.
        wanted = Wanted(projection="pca", protocol=_common_protocol(runs))
        with warnings.catch_warnings():
            # The comparison has given the notes on this graph.
            warnings.simplefilter("ignore", Note)
            entries = [_entry(folder, wanted, silent) for folder in runs]
    write_page(page, compare_runs(entries, "pca", silent))
    return str(page)


def _describe(folder: Path, path: Path, wanted: Wanted, say: Say) -> dict[str, Any]:
    material = _with_columns(_material(folder, wanted, say), wanted)
    content = describe_run(material, projection=wanted.projection, say=say)
    say("writing")
    with deriving(folder, material.run) if path.parent == folder else nullcontext():
        size = write_page(path, content)
    record = {
        "report": str(path),
        "runs": [str(folder)],
        "nodes": material.graph.num_nodes,
        "shown": len(material.shown),
        "projection": content["map"]["views"][0]["projection"],
        "bytes": size,
    }
    if wanted.tensorboard:
        record["tensorboard"] = [str(write_tensorboard(folder, material.run, material))]
    return record


def _compare(folders: list[Path], path: Path, wanted: Wanted, say: Say) -> dict[str, Any]:
    wanted = replace(wanted, protocol=wanted.protocol or _common_protocol(folders))
    entries = [_entry(folder, wanted, say) for folder in folders]
    for index, entry in enumerate(entries):
        if entry.material:
            # The maps have the columns of the first.
            entries[index] = replace(entry, material=_with_columns(entry.material, wanted))
            break
    size = write_page(path, compare_runs(entries, wanted.projection, say))
    record = {"report": str(path), "runs": [str(folder) for folder in folders], "bytes": size}
    if wanted.tensorboard:
        record["tensorboard"] = [str(write_tensorboard(entry.folder, entry.run)) for entry in entries]
    return record


def _common_protocol(folders: list[Path]) -> str:
    """The probe of the first run that was scored by one: all runs of a page are scored by the same."""
    stored = [(stored_evaluation(folder) or {}).get("protocol") for folder in folders]
    return next((protocol for protocol in stored if protocol in ("paper", "tuned")), "paper")


def _entry(folder: Path, wanted: Wanted, say: Say) -> Entry:
    """A run to compare; one whose graph cannot be read has the scores it had."""
    say(str(folder))
    try:
        material = _material(folder, wanted, say)
    except InputError as error:
        note(f"{folder} has no map: {error}")
        return Entry(folder, read_run(folder), stored_evaluation(folder))
    return Entry(folder, material.run, material.evaluation, material)


def _material(folder: Path, wanted: Wanted, say: Say) -> Material:
    say("reading")
    run, vectors, node_ids = read_results(folder)
    found = stored_evaluation(folder)
    asked = _asked(run, found, wanted)
    loaded = labelled(folder, run, asked)
    if isinstance(loaded.graph, Store):
        require_loadable(loaded.graph)
        loaded = replace(loaded, graph=loaded.graph.load())
    require_same_nodes(node_ids, loaded.graph, folder, run)
    say("evaluating")
    evaluation = _evaluated(folder, run, lambda: loaded, found, asked, wanted.device)
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
        device=str(scoring_device(wanted.device)),
    )


def _with_columns(material: Material, wanted: Wanted) -> Material:
    if wanted.nodes is None:
        return material
    return replace(material, columns=read_columns(wanted.nodes, material.graph, id_column=wanted.id_column))


def _asked(run: Run, found: dict[str, Any] | None, wanted: Wanted) -> Asked:
    """What a run is scored by on its page: the labels given or its own, else those of its evaluation."""
    protocol = wanted.protocol or ("tuned" if (found or {}).get("protocol") == "tuned" else "paper")
    if wanted.labels is not None or wanted.label is not None:
        return Asked(protocol, wanted.labels, wanted.label)
    words = (found or {}).get("asked", {})
    has_labels = run.graph["labels"] is not None or is_dataset(run.graph["source"])
    return Asked(protocol, **({} if has_labels and "labels" in words else words))


def _evaluated(
    folder: Path,
    run: Run,
    load: Callable[[], Loaded],
    found: dict[str, Any] | None,
    asked: Asked,
    device: str,
) -> dict[str, Any] | None:
    """The scores of `spgcl eval`, computed now if there are none or they are of other labels."""
    if found:
        is_scored = "mean" in found or "task" not in found
        is_asked = found.get("protocol") in (None, "predictions", asked.protocol)
        if is_scored and is_asked and _is_of_same_task(found, load):
            return found
        if "task" in found:
            note(f"{folder / 'eval.json'} is of other labels, splits or probe: evaluated again")
    try:
        loaded = load()
        if loaded.labels is None and load_held_out(folder) is None:
            return found
        record = evaluate_run(folder, run, loaded, asked, device)
    except InputError as error:
        note(f"{folder} is not evaluated: {error}")
        return None
    try:
        write_evaluation(folder, record, run)
    except InputError as error:
        # A page can also be made of a run in a read-only folder.
        note(str(error))
    return record


def _is_of_same_task(found: dict[str, Any], load: Callable[[], Loaded]) -> bool:
    """Whether an evaluation is of the labels and splits of the page; true if the graph cannot be read."""
    try:
        loaded = load()
    except InputError:
        return True
    if loaded.labels is None or loaded.splits is None:
        return True
    return bool(found.get("task") == task_digest(loaded.graph, loaded.labels, loaded.splits))
