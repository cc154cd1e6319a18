"""`spgcl fit`: train on a graph and write the run."""

import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from spgcl.cli.options import (
    AttributesOption,
    DeviceOption,
    DirectedOption,
    FeaturesOption,
    GraphOptions,
    IdOption,
    JsonOption,
    LabelsOption,
    SetOption,
    SourceOption,
    StructuralOption,
    TargetOption,
    ThreadsOption,
    WeightOption,
    given_settings,
)
from spgcl.cli.output import note, print_json, print_table
from spgcl.cli.progress import progress_line
from spgcl.errors import InputError, NoFeaturesError

if TYPE_CHECKING:
    from spgcl.methods import Supervision
    from spgcl.runs.record import Run
    from spgcl.runs.sources import Loaded


def fit(
    graph: Annotated[
        str, typer.Argument(help="A data set's name, or a path to a graph.")
    ] = "csbm-heterophilic",
    out: Annotated[
        Path | None, typer.Option("--out", help="Run folder (default: runs/GRAPH-METHOD-SEED).")
    ] = None,
    method: Annotated[str, typer.Option("--method", help="See `spgcl methods`.")] = "spgcl",
    preset: Annotated[str | None, typer.Option("--preset", help="published, paper or validated.")] = None,
    set_: SetOption = None,
    steps: Annotated[int | None, typer.Option("--steps", help="Short for --set steps=N.")] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, max=2**63 - 1, help="Decides every draw.")] = 0,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Full retrainings, one folder each.")] = 1,
    format_: Annotated[
        Literal["parquet", "npy", "csv"], typer.Option("--format", help="Of embeddings.")
    ] = "parquet",
    labels: LabelsOption = None,
    hold_out_edges: Annotated[
        float, typer.Option("--hold-out-edges", help="Share of edges kept from training for link prediction.")
    ] = 0.0,
    observe: Annotated[
        int, typer.Option("--observe", min=0, help="Record health curves every so many steps.")
    ] = 0,
    checkpoint_every: Annotated[
        float, typer.Option("--checkpoint-every", min=0, help="Seconds between checkpoints.")
    ] = 60.0,
    resume: Annotated[bool, typer.Option("--resume", help="Continue a run that was stopped.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier run.")] = False,
    report: Annotated[bool, typer.Option("--report", help="Also make the page, see spgcl report.")] = False,
    features: FeaturesOption = None,
    structural: StructuralOption = None,
    source: SourceOption = None,
    target: TargetOption = None,
    weight: WeightOption = None,
    attributes: AttributesOption = None,
    id_: IdOption = None,
    directed: DirectedOption = False,
    device: DeviceOption = "auto",
    threads: ThreadsOption = None,
    precision: Annotated[
        Literal["auto", "float32", "tf32"],
        typer.Option("--precision", help="Of products on CUDA; auto takes tf32."),
    ] = "auto",
    deterministic: Annotated[
        bool, typer.Option("--deterministic", help="The same bytes for the same seed on CUDA too, slower.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Train on a graph and write weights, embeddings and a record; only supervised methods look at labels."""
    import torch

    from spgcl.engine.device import choose_device
    from spgcl.engine.recording import waking
    from spgcl.evaluation.health import observer
    from spgcl.methods import find, resolved_settings
    from spgcl.methods.presets import require_preset
    from spgcl.runs.fit import (
        describe_source,
        drop_derived,
        drop_scores,
        fit_run,
        is_whole,
        open_folder,
        remove_run,
        tidy,
    )
    from spgcl.runs.record import Run, write_run
    from spgcl.runs.sources import resolve, training_graph

    if resume and overwrite:
        raise InputError("--resume and --overwrite contradict each other; choose one")
    if report:
        from spgcl.report.page import require_plotly

        require_plotly()
    if threads:
        torch.set_num_threads(threads)
    where = choose_device(device)
    # Misspelt names are refused before a graph is read.
    given = given_settings(set_, steps)
    resolved_settings(method, None, "", given)
    if preset:
        require_preset(preset, method)
    options = GraphOptions(features, structural, source, target, weight, attributes, id_, directed)
    # The library reads the switch for determinism when it is first used: not yet.
    with nullcontext() if deterministic else waking(where):
        try:
            loaded = resolve(graph, options, labels)
        except NoFeaturesError:
            if find(method).reads_features:
                raise
            options = replace(options, structural="degree")
            loaded = resolve(graph, options, labels)
    settings = resolved_settings(method, preset, loaded.preset_name, given)
    supervision = _supervision(method, loaded)
    for remark in loaded.graph.notes:
        note(remark)
    folder = out or Path("runs") / f"{loaded.name}-{method}-{seed}"
    if seeds > 1 and (folder / "run.json").exists():
        raise InputError(f"{folder} holds a single run; choose another --out for {seeds} retrainings")
    planned, relabelled = [], []
    for number in range(seed, seed + seeds):
        place = folder if seeds == 1 else folder / f"seed-{number}"
        seen, *held_out = training_graph(loaded.graph, options.given(), hold_out_edges, number)
        run = Run(
            dataset=loaded.name,
            method=method,
            preset=preset,
            settings=settings,
            seed=number,
            graph=describe_source(loaded.source, options.given(), labels, seen),
            device=str(where),
            threads=torch.get_num_threads(),
            precision=precision,
            deterministic=deterministic,
            command=["spgcl", *sys.argv[1:]],
            embedding_format=format_,
            hold_out_edges=hold_out_edges,
            supervision=supervision.record() if supervision else None,
        )
        earlier = open_folder(place, run, resume=resume, overwrite=overwrite)
        if earlier is not None and _share_labels(earlier, run, given=labels is not None):
            relabelled.append((place, earlier))
        planned.append((place, run, earlier, seen, held_out))
    if overwrite and seeds > 1:
        for leftover in set(folder.glob("seed-*")) - {place for place, *_ in planned}:
            remove_run(leftover)
    if seeds > 1 and not all(earlier and is_whole(place, earlier) for place, _, earlier, *_ in planned):
        drop_derived(folder)
    for place, earlier in relabelled:
        for scored in {folder, place}:
            drop_scores(scored)
        write_run(place, earlier)
    done = []
    # Only now, when all folders have been looked at, does the first training start.
    for place, run, earlier, seen, held_out in planned:
        if earlier is not None and is_whole(place, earlier):
            tidy(place)
            run = earlier
        else:
            with (
                _progress(settings.get("steps", 0), f"{loaded.name} {method}", quiet=json) as progress,
                _stopping(trains=settings.get("steps", 0) > 0) as stop,
            ):
                run = fit_run(
                    place,
                    seen,
                    run,
                    replace=earlier is None,
                    supervision=supervision,
                    held_out=(held_out[0], held_out[1]) if held_out else None,
                    save_every=checkpoint_every,
                    progress=progress,
                    stop=stop,
                    remark=note,
                    observe=observer(loaded.labels, positives=settings.get("positives", 5)),
                    observe_every=observe,
                )
        done.append((place, run))
        if run.status == "interrupted":
            note(f"stopped after {run.steps} steps; embeddings are written, and --resume continues")
            raise KeyboardInterrupt
    page = None
    if report:
        from spgcl.cli.report import Wanted, write_report

        page = write_report([folder], None, Wanted(device=device), quiet=json)["report"]
    has_labels = loaded.labels is not None or done[0][1].graph["labels"] is not None
    _say(folder, done, page, has_labels=has_labels, as_json=json)


def _share_labels(earlier: "Run", run: "Run", *, given: bool) -> bool:
    """Let a resumed run have its earlier labels unless others are given; whether its record changed."""
    newer, older = (run, earlier) if given else (earlier, run)
    (labels, column), before = _labels_of(newer), _labels_of(older)
    older.graph["labels"] = labels
    others = {name: value for name, value in older.graph["options"].items() if name != "id"}
    older.graph["options"] = {**others, "id": column} if column else others
    return given and before != (labels, column)


def _labels_of(run: "Run") -> tuple[str | None, str | None]:
    """The file of labels, and the column of node ids in it."""
    return run.graph["labels"], run.graph["options"].get("id")


def _supervision(method: str, loaded: "Loaded") -> "Supervision | None":
    from spgcl.methods import Supervision, find

    if not find(method).supervised:
        return None
    if loaded.labels is None or loaded.splits is None:
        raise InputError(
            f"{method} is supervised and {loaded.source} has no labels; give them by --labels FILE"
        )
    supervision = Supervision.of(loaded.labels, loaded.splits)
    note(
        f"{method} is supervised: {supervision.task[0]} models are trained on labels; the embeddings are "
        "their class scores, side by side, and spgcl eval scores each model on its own split"
    )
    return supervision


def _say(
    folder: Path, done: "list[tuple[Path, Run]]", page: str | None, *, has_labels: bool, as_json: bool
) -> None:
    summaries = [run.summary(place) for place, run in done]
    if as_json:
        record = summaries[0] if len(done) == 1 else {**summaries[0], "run": str(folder), "runs": summaries}
        print_json({**record, "report": page} if page else record)
        return
    columns = ["run", "steps", "last loss", "prepare s", "train s", "embed s", "peak MiB"]
    rows = [
        [
            str(place),
            run.steps,
            run.history["loss"][-1] if run.history.get("loss") else None,
            *[round(run.seconds[phase], 2) for phase in ("prepare", "train", "embed")],
            round(run.peak_memory_mib),
        ]
        for place, run in done
    ]
    print_table(f"{done[0][1].method} on {done[0][1].dataset}", columns, rows)
    if page:
        print(f"page: {page}")
        return
    needed = "" if has_labels or done[0][1].hold_out_edges else " --labels FILE"
    print(f"next: spgcl eval {shlex.quote(str(folder))}{needed}")


@contextmanager
def _progress(total: int, title: str, *, quiet: bool) -> Iterator[Callable[[int, float], None] | None]:
    """Steps, time left and loss."""
    tail = "loss {task.fields[loss]:.4f}"
    quiet = quiet or not total
    with progress_line(
        title, total=total, amount="steps", tail=tail, stays=True, quiet=quiet, loss=float("nan")
    ) as update:
        yield update and (lambda step, loss: update(completed=step, loss=loss))


@contextmanager
def _stopping(*, trains: bool) -> Iterator[Callable[[], bool]]:
    """Let the first Ctrl-C end training between two steps; the second one ends the process.

    Where nothing is trained, the first one does.
    """
    asked = False

    def ask(signum: int, frame: FrameType | None) -> None:
        del signum, frame
        nonlocal asked
        if asked:
            os._exit(130)
        if not trains:
            raise KeyboardInterrupt
        asked = True
        # Not by way of a stream, which may be in the middle of a line.
        os.write(2, b"\nnote: stopping after this step; Ctrl-C again ends at once\n")

    earlier = signal.signal(signal.SIGINT, ask)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, earlier)
