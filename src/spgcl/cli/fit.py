"""`spgcl fit`: train on a graph and write the run."""

import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from spgcl.cli.options import (
    GraphArgument,
    HoldOutOption,
    LabelsOption,
    Running,
    SetOption,
    given_settings,
    method_names,
    takes_options,
)
from spgcl.cli.output import note, print_json, print_table
from spgcl.cli.watching import watched
from spgcl.runs.options import DEFAULT_METHOD, GraphOptions

if TYPE_CHECKING:
    from spgcl.runs.plan import Request
    from spgcl.runs.record import Run
    from spgcl.scale.engines import Engine


@dataclass(frozen=True)
class FitOptions:
    """What to train and where to write it."""

    out: Annotated[
        Path | None, typer.Option("--out", help="Run folder (default: runs/GRAPH-METHOD-SEED).")
    ] = None
    method: Annotated[
        str, typer.Option("--method", help="See `spgcl methods`.", autocompletion=method_names)
    ] = DEFAULT_METHOD
    preset: Annotated[
        str | None,
        typer.Option(
            "--preset", help="The method's settings for a benchmark graph: published, paper or validated."
        ),
    ] = None
    set_: SetOption = None
    steps: Annotated[
        int | None, typer.Option("--steps", help="Short for --set steps=N, of a method that is trained.")
    ] = None
    seed: Annotated[
        int, typer.Option("--seed", min=0, max=2**63 - 1, help="Determines all random draws.")
    ] = 0
    seeds: Annotated[
        int,
        typer.Option(
            "--retrainings", "--seeds", min=1, help="Trainings with seeds of their own, a folder each."
        ),
    ] = 1
    embedding_format: Annotated[
        Literal["parquet", "npy", "csv"], typer.Option("--format", help="File format of the embeddings.")
    ] = "parquet"
    labels: LabelsOption = None
    hold_out_edges: HoldOutOption = 0.0
    observe: Annotated[
        int, typer.Option("--observe", min=0, help="Record health curves every N steps (0: never).")
    ] = 0
    checkpoint_every: Annotated[
        float, typer.Option("--checkpoint-every", min=0, help="Seconds between checkpoints.")
    ] = 60.0
    resume: Annotated[bool, typer.Option("--resume", help="Continue a run that was stopped.")] = False
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier run.")] = False
    engine: Annotated[
        Literal["local", "ray"], typer.Option("--engine", help="Where to compute: here, or on Ray.")
    ] = "local"
    workers: Annotated[int, typer.Option("--workers", min=1, help="Processes that train together.")] = 1
    address: Annotated[
        str | None, typer.Option("--address", help="A Ray cluster (default: one on this machine).")
    ] = None
    report: Annotated[bool, typer.Option("--report", help="Also write the page, see `spgcl report`.")] = False


PrecisionOption = Annotated[
    Literal["auto", "float32", "tf32"],
    typer.Option("--precision", help="Of matrix products on CUDA; auto is tf32."),
]
DeterministicOption = Annotated[
    bool, typer.Option("--deterministic", help="Same seed, same bytes on CUDA too; slower.")
]


@takes_options
def fit(
    context: typer.Context,
    graph: GraphArgument = "csbm-heterophilic",
    *,
    asked: FitOptions,
    options: GraphOptions,
    running: Running,
    precision: PrecisionOption = "auto",
    deterministic: DeterministicOption = False,
) -> None:
    """Train on a graph and write weights, embeddings and a record; only supervised methods use labels."""
    from spgcl.runs.plan import Request
    from spgcl.runs.together import follow, follow_all
    from spgcl.scale.engines import Together, engine_of

    given = dict(vars(asked))
    pairs, steps, report = map(given.pop, ("set_", "steps", "report"))
    save_every, observe_every = given.pop("checkpoint_every"), given.pop("observe")
    address, name = given.pop("address"), given.pop("engine")
    request = Request(
        graph=graph,
        device=running.start(),
        options=options,
        settings=given_settings(pairs, steps),
        precision=precision,
        deterministic=deterministic,
        command=("spgcl", *context.obj),
        **given,
    )
    page_on = running.device if report else None
    with engine_of(name, request.workers, address, follow) as engine:
        if isinstance(engine, Together) and not engine.leads:
            follow_all(engine.group)
            return
        request = replace(request, workers=engine.count)
        show = _train(request, save_every, observe_every, engine, page_on=page_on, as_json=running.json)
    # After the engine, whose processes may print.
    show()


def _train(
    request: "Request",
    save_every: float,
    observe_every: int,
    engine: "Engine",
    *,
    page_on: str | None,
    as_json: bool,
) -> Callable[[], None]:
    """Carry out a request, its page on the device `page_on` if any; returns what shows the result."""
    from spgcl.runs.plan import carry_out, plan
    from spgcl.runs.sources import require_loadable

    if page_on:
        from spgcl.report.page import require_plotly

        require_plotly()
    planned = plan(request)
    if page_on:
        require_loadable(planned.loaded.graph)
    watch = partial(watched, quiet=as_json)
    done = []
    for folder, run in carry_out(
        planned, watch=watch, save_every=save_every, observe_every=observe_every, engine=engine
    ):
        done.append((folder, run))
        if run.status == "interrupted":
            note(f"stopped after {run.steps} steps; embeddings are written, and --resume continues")
            raise KeyboardInterrupt
    page = None
    if page_on:
        from spgcl.report.write import Wanted, write_report

        page = write_report([planned.folder], None, Wanted(device=page_on))["report"]
    has_labels = planned.loaded.labels is not None or done[0][1].graph["labels"] is not None
    return partial(_print_result, planned.folder, done, page, has_labels=has_labels, as_json=as_json)


def _row(path: Path, run: "Run") -> dict[str, Any]:
    """A run in the table; steps, loss and time of training only if there was one."""
    phases = ("prepare", "train", "embed") if run.trains else ("prepare", "embed")
    last = (run.history.get("loss") or [None])[-1]
    return {
        "run": str(path),
        **({"steps": run.steps, "last loss": last} if run.trains else {}),
        **{f"{phase} s": round(run.seconds.get(phase, 0.0), 2) for phase in phases},
        "peak MiB": round(run.peak_memory_mib),
    }


def _print_result(
    folder: Path, done: "list[tuple[Path, Run]]", page: str | None, *, has_labels: bool, as_json: bool
) -> None:
    summaries = [run.summary(path) for path, run in done]
    if as_json:
        record = summaries[0] if len(done) == 1 else {**summaries[0], "run": str(folder), "runs": summaries}
        print_json({**record, "report": page} if page else record)
        return
    rows = [_row(path, run) for path, run in done]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    cells = [[row.get(name) for name in columns] for row in rows]
    print_table(f"{done[0][1].method} on {done[0][1].dataset}", columns, cells)
    for sentence in done[0][1].findings.get("verdict", []):
        print(sentence)
    if page:
        print(f"page: {page}")
        return
    needed = "" if has_labels or done[0][1].hold_out_edges else " [--labels FILE]"
    print(f"next: spgcl eval {shlex.quote(str(folder))}{needed}")
