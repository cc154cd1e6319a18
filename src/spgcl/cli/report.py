"""`spgcl report`: one page to look at, of a run or of several."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from spgcl.cli.options import DeviceOption, IdOption, JsonOption, LabelsOption, ThreadsOption
from spgcl.cli.output import note, print_json
from spgcl.errors import InputError

if TYPE_CHECKING:
    from spgcl.cli.graphs import Loaded
    from spgcl.report.material import Material

# What `describe_run` says it is doing, at most; a progress line needs to know.
_STAGES = 9


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
    id_: IdOption = None,
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
    record = write_report(
        runs,
        out,
        labels=labels,
        nodes=nodes,
        id_column=id_,
        projection=projection,
        tensorboard=tensorboard,
        device=device,
        quiet=json,
    )
    if json:
        print_json(record)
    else:
        print(f"page written to {record['report']} ({record['bytes'] / 1e6:.1f} MB); open it in a browser")
        for folder in record.get("tensorboard", []):
            print(f"for TensorBoard: tensorboard --logdir {folder}")


def write_report(
    runs: list[Path],
    out: Path | None = None,
    *,
    labels: Path | None = None,
    nodes: Path | None = None,
    id_column: str | None = None,
    projection: Literal["auto", "umap", "pca"] = "auto",
    tensorboard: bool = False,
    device: str = "auto",
    quiet: bool = False,
) -> dict[str, Any]:
    """Write the page of a run, or of several, and say where it is. See `report` for the arguments."""
    from spgcl.cli.evaluate import run_folders
    from spgcl.report.page import require_plotly, require_replaceable
    from spgcl.report.tensorboard import require_tensorboard

    require_plotly()
    if tensorboard:
        require_tensorboard()
    folders = list(dict.fromkeys(folder for run in runs for folder in run_folders(run)))
    several = len(folders) > 1
    path = out or (runs[0] / "report.html" if len(runs) == 1 else Path("comparison.html"))
    require_replaceable(path)
    if several and nodes:
        raise InputError("--nodes colours the map of one run; a comparison has none")
    if several:
        return _compare(folders, path, labels, tensorboard, device, quiet)
    return _single(folders[0], path, labels, nodes, id_column, projection, tensorboard, device, quiet)


def _single(
    folder: Path,
    path: Path,
    labels: Path | None,
    nodes: Path | None,
    id_column: str | None,
    projection: Literal["auto", "umap", "pca"],
    tensorboard: bool,
    device: str,
    quiet: bool,
) -> dict[str, Any]:
    from spgcl.report.page import write_page
    from spgcl.report.single import describe_run
    from spgcl.report.tensorboard import write_tensorboard

    with _progress(str(folder), quiet=quiet) as say:
        say("reading")
        material = _material(folder, labels, nodes, id_column, device, say)
        content = describe_run(material, projection=projection, say=say)
        say("writing")
        size = write_page(path, content)
        places = [str(write_tensorboard(folder, material.run, material))] if tensorboard else []
    record = {
        "report": str(path),
        "runs": [str(folder)],
        "nodes": material.graph.num_nodes,
        "shown": len(material.shown),
        "projection": content["map"]["projection"],
        "bytes": size,
    }
    return {**record, "tensorboard": places} if tensorboard else record


def _compare(
    folders: list[Path], path: Path, labels: Path | None, tensorboard: bool, device: str, quiet: bool
) -> dict[str, Any]:
    from spgcl.cli.graphs import resolve_recorded
    from spgcl.report.comparison import compare_runs
    from spgcl.report.page import write_page
    from spgcl.report.tensorboard import write_tensorboard
    from spgcl.storage import read_run

    entries, places = [], []
    with _progress(f"{len(folders)} runs", quiet=quiet, total=len(folders) + 1) as say:
        for folder in folders:
            say(folder.name)
            run = read_run(folder)
            load = partial(resolve_recorded, run.graph, labels)
            entries.append((folder, run, _evaluated(folder, load, labels, device)))
            if tensorboard:
                places.append(str(write_tensorboard(folder, run)))
        size = write_page(path, compare_runs(entries))
    said = {"report": str(path), "runs": [str(folder) for folder in folders], "bytes": size}
    return {**said, "tensorboard": places} if tensorboard else said


def _material(
    folder: Path,
    labels: Path | None,
    nodes: Path | None,
    id_column: str | None,
    device: str,
    say: Callable[[str], None],
) -> "Material":
    import numpy as np

    from spgcl.cli.graphs import resolve_recorded
    from spgcl.estimator import choose_device
    from spgcl.report.columns import read_columns
    from spgcl.report.material import Material
    from spgcl.storage import read_results

    run, vectors, node_ids = read_results(folder)
    loaded = resolve_recorded(run.graph, labels)
    # Formats without types give whole numbers back for ids that were text.
    if not np.array_equal(node_ids.astype(str), loaded.graph.node_ids.astype(str)):
        raise InputError(f"the nodes of {run.graph['source']} are not those of {folder}; fit it again")
    if not run.hold_out_edges and loaded.graph.digest != run.graph["digest"]:
        note(f"{run.graph['source']} has changed since {folder} was fitted; the page shows it as it is now")
    columns = read_columns(nodes, loaded.graph, id_column=id_column) if nodes else ()
    say("evaluating")
    evaluation = _evaluated(folder, lambda: loaded, labels, device)
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
        device=str(choose_device(device)),
    )


def _evaluated(
    folder: Path, load: "Callable[[], Loaded]", labels: Path | None, device: str
) -> dict[str, Any] | None:
    """What `spgcl eval` found or, where it did not run or other labels are given, finds now."""
    import json

    from spgcl.cli.evaluate import evaluate_one
    from spgcl.storage import load_held_out

    path = folder / "eval.json"
    if path.exists() and labels is None:
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise InputError(f"{path} cannot be read ({error}); run spgcl eval {folder} again") from None
        return dict(record)
    try:
        loaded = load()
        if loaded.labels is None and load_held_out(folder) is None:
            return None
        return evaluate_one(folder, loaded, "paper", device)
    except InputError as error:
        note(f"{folder} is not evaluated: {error}")
        return None


@contextmanager
def _progress(title: str, *, quiet: bool, total: int = _STAGES) -> Iterator[Callable[[str], None]]:
    """One calm line on a terminal: what is being done, how far it is, how long it has taken."""
    import sys

    if quiet or not sys.stderr.isatty():
        yield _say_nothing
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(
        *columns, TextColumn("{task.fields[stage]}"), console=Console(stderr=True), transient=True
    ) as bar:
        task = bar.add_task(title, total=total, stage="")
        yield lambda words: bar.update(task, advance=1, stage=words)


def _say_nothing(words: str) -> None:
    del words
