"""`spgcl compare`: several methods on one graph, side by side."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from spgcl.cli.options import (
    GraphArgument,
    HoldOutOption,
    LabelsOption,
    MetricOption,
    Running,
    SplitsOption,
    given_settings,
    takes_options,
)
from spgcl.cli.output import note, print_json, print_table
from spgcl.cli.watching import watched
from spgcl.runs.options import GraphOptions

SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="NAME=VALUE for every method that has it, or METHOD.NAME=VALUE."),
]


@dataclass(frozen=True)
class CompareOptions:
    """What is compared, by what, and where the runs are."""

    methods: Annotated[
        str | None, typer.Option("--methods", help="Names, a,b,c (default: a short list that takes minutes).")
    ] = None
    labels: LabelsOption = None
    protocol: Annotated[
        Literal["paper", "tuned"], typer.Option("--protocol", help="The probe, see `spgcl eval`.")
    ] = "tuned"
    metric: MetricOption = None
    splits: SplitsOption = None
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder of the runs (default: runs/GRAPH-compared).")
    ] = None
    set_: SetOption = None
    seed: Annotated[int, typer.Option("--seed", min=0, max=2**63 - 1, help="Of the first training.")] = 0
    retrainings: Annotated[int, typer.Option("--retrainings", min=1, help="Trainings of each method.")] = 1
    hold_out_edges: HoldOutOption = 0.0
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Train again what is trained already.")] = (
        False
    )


@takes_options
def compare(
    graph: GraphArgument,
    *,
    asked: CompareOptions,
    options: GraphOptions,
    running: Running,
) -> None:
    """Train several methods on one graph and compare them: validation chooses, the test part is read once.

    Without labels the table has what can be measured without. Methods that are trained already are not
    trained again.
    """
    from spgcl.report.write import write_comparison
    from spgcl.runs.compare import Contest
    from spgcl.runs.compare import compare as train_and_compare
    from spgcl.runs.evaluate import Asked
    from spgcl.runs.plan import Request

    given = dict(vars(asked))
    names = (given.pop("methods") or "").split(",")
    scoring = Asked(**{name: given.pop(name) for name in ("protocol", "metric", "splits")})
    settings, seeds = given_settings(given.pop("set_")), given.pop("retrainings")
    request = Request(
        graph=graph,
        device=running.start(),
        options=options,
        seeds=seeds,
        resume=not asked.overwrite,
        **given,
    )
    listed = {"methods": names} if names != [""] else {}
    contest = Contest(request, settings=settings, asked=scoring, **listed)
    record = train_and_compare(contest, partial(watched, quiet=running.json))
    record["report"] = write_comparison(record, note)
    if running.json:
        print_json(record)
        return
    _show(record)


def _show(record: dict[str, object]) -> None:
    from spgcl.report.words import comparison_rows, comparison_words

    columns, rows = comparison_rows(record)
    print_table(f"methods on {record['dataset']}", columns, rows)
    print(*comparison_words(record), sep="\n")
    if record["report"]:
        print(f"page: {record['report']}")
