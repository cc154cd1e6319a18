"""`spgcl report`: one page to look at, of a run or of several."""

import shlex
from pathlib import Path
from typing import Annotated, Literal

import typer

from spgcl.cli.options import LabelOptions, Running, takes_options
from spgcl.cli.output import print_json
from spgcl.face.progress import progress_line


@takes_options
def report(
    runs: Annotated[list[Path], typer.Argument(help="A run folder; several are compared.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", help="File to write (default: RUN/report.html; comparison.html for several)."),
    ] = None,
    *,
    given: LabelOptions,
    nodes: Annotated[
        Path | None,
        typer.Option("--nodes", help="Table by node id whose columns can colour the map."),
    ] = None,
    id_: Annotated[
        str | None, typer.Option("--id", help="Column of node ids in --nodes (default: the first).")
    ] = None,
    projection: Annotated[
        Literal["auto", "umap", "pca"],
        typer.Option("--projection", help="Of the map; auto: UMAP if it is installed."),
    ] = "auto",
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Also write RUN/tensorboard: scalars and projector.")
    ] = False,
    protocol: Annotated[
        Literal["paper", "tuned"] | None,
        typer.Option("--protocol", help="Probe of all scores, see eval (default: that of the first run)."),
    ] = None,
    running: Running,
) -> None:
    """Make one self-contained page: verdict, map, evaluation, homophily, training; or a comparison."""
    from spgcl.report.write import Wanted, silent, write_report

    running.start()
    wanted = Wanted(given.labels, given.label, nodes, id_, projection, tensorboard, running.device, protocol)
    title = str(runs[0]) if len(runs) == 1 else f"{len(runs)} runs"
    with progress_line(title, tail="{task.fields[stage]}", quiet=running.json, stage="") as update:
        say = (lambda stage: update(stage=stage)) if update else silent
        record = write_report(runs, out, wanted, say)
    if running.json:
        print_json(record)
        return
    print(f"page written to {record['report']} ({record['bytes'] / 1e6:.1f} MB); open it in a browser")
    for folder in record.get("tensorboard", []):
        print(f"for TensorBoard: tensorboard --logdir {shlex.quote(folder)}")
