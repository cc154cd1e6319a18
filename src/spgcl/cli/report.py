"""`spgcl report`: one page to look at, of a run or of several."""

import json
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from spgcl.cli.options import DeviceOption, JsonOption, LabelsOption, ThreadsOption
from spgcl.cli.output import note, print_json
from spgcl.cli.progress import progress_line
from spgcl.errors import InputError

if TYPE_CHECKING:
    from spgcl.report.material import Material
    from spgcl.runs.sources import Loaded

# What `describe_run` says it is doing, at most; a progress line needs to know.
_STAGES = 11


@dataclass(frozen=True)
class Wanted:
    """What a page is to be made from and with, besides its runs; see the options of `report`."""

    labels: Path | None = None
    nodes: Path | None = None
    id_column: str | None = None
    projection: Literal["auto", "umap", "pca"] = "auto"
    tensorboard: bool = False
    device: str = "auto"


def report(
    runs: Annotated[list[Path], typer.Argument(help="A run folder; several are compared.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", help="File to write (default: RUN/report.html; comparison.html for several)."),
    ] = None,
    labels: LabelsOption = None,
    nodes: Annotated[
        Path | None,
        typer.Option("--nodes", help="Table by node id whose columns the map can be coloured by."),
    ] = None,
    id_: Annotated[
        str | None, typer.Option("--id", help="Column of node ids in --nodes (default: the first).")
    ] = None,
    projection: Annotated[
        Literal["auto", "umap", "pca"],
        typer.Option("--projection", help="Of the map; auto: UMAP where it is installed."),
    ] = "auto",
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Also write RUN/tensorboard: scalars and projector.")
    ] = False,
    device: DeviceOption = "auto",
    threads: ThreadsOption = None,
    json: JsonOption = False,
) -> None:
    """Make one self-contained page: summary, training, map, homophily, evaluation; or a comparison."""
    import torch

    if threads:
        torch.set_num_threads(threads)
    wanted = Wanted(labels, nodes, id_, projection, tensorboard, device)
    record = write_report(runs, out, wanted, quiet=json)
    if json:
        print_json(record)
        return
    print(f"page written to {record['report']} ({record['bytes'] / 1e6:.1f} MB); open it in a browser")
    for folder in record.get("tensorboard", []):
        print(f"for TensorBoard: tensorboard --logdir {shlex.quote(folder)}")


def write_report(runs: list[Path], out: Path | None, wanted: Wanted, *, quiet: bool) -> dict[str, Any]:
    """Write the page of a run, or of several, and say what was written where."""
    from spgcl.cli.evaluate import run_folders
    from spgcl.report.page import require_plotly, require_replaceable
    from spgcl.report.tensorboard import require_tensorboard

    require_plotly()
    if wanted.tensorboard:
        require_tensorboard()
    folders = list(dict.fromkeys(folder for run in runs for folder in run_folders(run)))
    path = out or (runs[0] / "report.html" if len(runs) == 1 else Path("comparison.html"))
    require_replaceable(path)
    if len(folders) == 1:
        return _describe(folders[0], path, wanted, quiet=quiet)
    if wanted.nodes:
        raise InputError("--nodes colours the map of one run; a comparison has none")
    return _compare(folders, path, wanted, quiet=quiet)


def _describe(folder: Path, path: Path, wanted: Wanted, *, quiet: bool) -> dict[str, Any]:
    from spgcl.report.page import write_page
    from spgcl.report.single import describe_run
    from spgcl.report.tensorboard import write_tensorboard

    with _progress(str(folder), _STAGES, quiet=quiet) as say:
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


def _compare(folders: list[Path], path: Path, wanted: Wanted, *, quiet: bool) -> dict[str, Any]:
    from spgcl.report.comparison import compare_runs
    from spgcl.report.page import write_page
    from spgcl.report.tensorboard import write_tensorboard
    from spgcl.runs.record import read_run
    from spgcl.runs.sources import resolve_recorded

    entries = []
    with _progress(f"{len(folders)} runs", len(folders), quiet=quiet) as say:
        for folder in folders:
            say(folder.name)
            run = read_run(folder)
            # A graph is read when it is asked for, and once.
            load = cache(partial(resolve_recorded, run.graph, wanted.labels))
            entries.append((folder, run, _evaluated(folder, load, wanted)))
        size = write_page(path, compare_runs(entries))
    record = {"report": str(path), "runs": [str(folder) for folder in folders], "bytes": size}
    if wanted.tensorboard:
        record["tensorboard"] = [str(write_tensorboard(folder, run)) for folder, run, _ in entries]
    return record


def _material(folder: Path, wanted: Wanted, say: Callable[[str], None]) -> "Material":
    import numpy as np

    from spgcl.cli.evaluate import is_as_fitted
    from spgcl.engine.device import scoring_device
    from spgcl.report.columns import read_columns
    from spgcl.report.material import Material
    from spgcl.runs.record import read_results
    from spgcl.runs.sources import resolve_recorded

    say("reading")
    run, vectors, node_ids = read_results(folder)
    loaded = resolve_recorded(run.graph, wanted.labels)
    # Formats without types give whole numbers back for ids that were text.
    if not np.array_equal(node_ids.astype(str), loaded.graph.node_ids.astype(str)):
        raise InputError(f"the nodes of {run.graph['source']} are not those of {folder}; fit it again")
    if not is_as_fitted(loaded.graph, run):
        note(f"{run.graph['source']} has changed since {folder} was fitted; the page shows it as it is now")
    columns = read_columns(wanted.nodes, loaded.graph, id_column=wanted.id_column) if wanted.nodes else ()
    say("evaluating")
    evaluation = _evaluated(folder, lambda: loaded, wanted)
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


def _evaluated(folder: Path, load: "Callable[[], Loaded]", wanted: Wanted) -> dict[str, Any] | None:
    """What `spgcl eval` found or, where it did not run or other labels are given, finds now."""
    from spgcl.cli.evaluate import evaluate_one
    from spgcl.runs.record import load_held_out

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
        return evaluate_one(folder, loaded, protocol, wanted.device)
    except InputError as error:
        note(f"{folder} is not evaluated: {error}")
        return None


def _is_of(found: dict[str, Any], load: "Callable[[], Loaded]") -> bool:
    """Whether an evaluation is of the labels and splits that the page will show."""
    from spgcl.evaluation.task import task_digest

    if "task" not in found:
        return True
    try:
        loaded = load()
    except InputError:
        return True
    if loaded.labels is None or loaded.splits is None:
        return True
    return bool(found["task"] == task_digest(loaded.graph, loaded.labels, loaded.splits))


@contextmanager
def _progress(title: str, total: int, *, quiet: bool) -> Iterator[Callable[[str], None]]:
    """Time left and what is being done."""
    with progress_line(title, total=total, tail="{task.fields[stage]}", quiet=quiet, stage="") as update:
        yield (lambda words: update(advance=1, stage=words)) if update else _say_nothing


def _say_nothing(words: str) -> None:
    del words
