"""`spgcl reproduce`: the tables and figures of the paper."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Annotated

import typer

from spgcl.cli.options import DeviceOption, JsonOption
from spgcl.cli.output import print_json, print_table
from spgcl.face.progress import progress_line


def reproduce(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME...",
            help="table1 to table11, fig-distance, fig-cover, fig-topk, fig-thop, audit, or all.",
        ),
    ],
    quick: Annotated[
        bool, typer.Option("--quick", help="A small version on the built-in graphs, without data.")
    ] = False,
    results: Annotated[
        Path, typer.Option("--results", help="Folder of results: what is there is not run again.")
    ] = Path("results"),
    out: Annotated[Path, typer.Option("--out", help="Folder of the tables and figures.")] = Path(
        "reproduction"
    ),
    graphs: Annotated[
        list[str] | None, typer.Option("--graph", metavar="GRAPH", help="Run only this one; repeatable.")
    ] = None,
    measure: Annotated[
        bool, typer.Option("--run/--no-run", help="Whether to run what has no result yet.")
    ] = True,
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="Runs at once (default: one per core).")
    ] = None,
    device: DeviceOption = "auto",
    json: JsonOption = False,
) -> None:
    """Tables and figures of the paper: ours, the paper's and the difference."""
    from spgcl.experiments.reproduce import Wanted
    from spgcl.experiments.reproduce import reproduce as carry_out

    wanted = Wanted(names, quick, results, out, tuple(graphs or ()), measure, device, workers)
    records = carry_out(wanted, partial(_watch, quiet=json))
    if json:
        print_json(records)
        return
    rows = [
        [record["name"], record["runs"], record["runs"] - record["missing"], record["files"][0]]
        for record in records
    ]
    print_table("reproduced", ["name", "runs", "with a result", "file"], rows)


@contextmanager
def _watch(total: int, *, quiet: bool) -> Iterator[Callable[[object], None]]:
    """One line for all runs, with the time left; gives what is called after each."""
    finished = count(1)
    with progress_line(f"{total} runs", total=total, amount="steps", quiet=quiet) as update:
        yield lambda _: update(completed=next(finished)) if update else None
