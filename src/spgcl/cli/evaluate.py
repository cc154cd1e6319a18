"""`spgcl eval`: linear probe, k-NN, clustering and link prediction; supervised runs by their predictions."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from spgcl.cli.options import (
    LabelOptions,
    MetricOption,
    Running,
    SplitsOption,
    takes_options,
)
from spgcl.cli.output import print_json, print_table, print_verdict
from spgcl.face.progress import Update, progress_line


@takes_options
def evaluate(
    run: Annotated[Path, typer.Argument(help="A run folder, or one that holds several retrainings.")],
    protocol: Annotated[
        Literal["paper", "tuned"],
        typer.Option(
            "--protocol", help="paper: 1000 epochs of Adam; tuned: L2 penalty chosen on validation nodes."
        ),
    ] = "paper",
    *,
    given: LabelOptions,
    id_: Annotated[
        str | None, typer.Option("--id", help="Column of node ids in labels (default: that of the run).")
    ] = None,
    metric: MetricOption = None,
    splits: SplitsOption = None,
    only: Annotated[
        str | None,
        typer.Option("--only", help="Parts to compute: probe,baselines,knn,clustering,links,reliability."),
    ] = None,
    running: Running,
) -> None:
    """Score a run's embeddings with labels that training never saw, or say what can be said without."""
    from spgcl.runs.evaluate import PARTS, Asked
    from spgcl.runs.evaluate import evaluate as score

    running.start()
    parts = tuple(only.split(",")) if only else PARTS
    asked = Asked(protocol, given.labels, given.label, id_, metric, splits, parts)
    with progress_line(f"probe of {run}", total=1.0, amount="fraction", quiet=running.json) as update:
        evaluated = score(run, asked, running.device, update and partial(_advance, update))
    try:
        evaluated.write()
    finally:
        # Scores took a while to compute: they are printed even if they cannot be written.
        if running.json:
            print_json(evaluated.record)
        else:
            _show(evaluated.record)


def _advance(update: Update, folder: Path, fraction: float) -> None:
    update(completed=fraction, description=f"probe of {folder}")


def _show(record: dict[str, Any]) -> None:
    from spgcl.report.words import SCORE_COLUMNS, judgement, score_rows

    title = f"{record['method']} on {record['dataset']}"
    if "split_source" in record:
        title += f" ({record['split_source']} splits)"
    print_table(title, SCORE_COLUMNS, score_rows(record))
    for sentence in judgement(record):
        print(sentence)
    for single in record.get("retrainings", [record]):
        if "verdict" in single:
            print_verdict(single)
