"""`spgcl eval`: linear probe, k-NN, clustering and link prediction; supervised runs by their predictions."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from spgcl.cli.options import DeviceOption, JsonOption, LabelsOption, ThreadsOption, start_on
from spgcl.cli.output import print_json, print_table, print_verdict
from spgcl.cli.progress import progress_line
from spgcl.errors import InputError


def evaluate(
    run: Annotated[Path, typer.Argument(help="A run folder, or one that holds several retrainings.")],
    protocol: Annotated[
        Literal["paper", "tuned"],
        typer.Option(
            "--protocol", help="paper: 1000 epochs of Adam; tuned: L2 penalty chosen on validation nodes."
        ),
    ] = "paper",
    labels: LabelsOption = None,
    device: DeviceOption = "auto",
    threads: ThreadsOption = None,
    json: JsonOption = False,
) -> None:
    """Score a run's embeddings with labels that training never saw, or say what can be said without."""
    from spgcl.runs.evaluate import evaluate_run, labelled, over_retrainings, run_folders, write_evaluation

    start_on("cpu", threads)
    folders = run_folders(run)
    loaded = labelled(*next(iter(folders.items())), labels)
    records = []
    for folder in folders:
        with progress_line(f"probe of {folder}", total=1.0, amount="fraction", quiet=json) as update:
            progress = update and (lambda fraction, update=update: update(completed=fraction))
            records.append(evaluate_run(folder, folders[folder], loaded, protocol, device, progress))
    record = over_retrainings(records) if len(records) > 1 else records[0]
    unwritten = None
    for folder, scores in (dict(zip(folders, records, strict=True)) | {run: record}).items():
        try:
            write_evaluation(folder, scores, folders.get(folder))
        except InputError as error:
            unwritten = error
    if json:
        print_json(record)
    else:
        _show(record)
    # Scores took a while to compute: they are printed even if they cannot be written.
    if unwritten:
        raise unwritten


def _show(record: dict[str, Any]) -> None:
    from spgcl.report.words import SCORE_COLUMNS, score_rows

    title = f"{record['method']} on {record['dataset']}"
    if "mean" in record:
        title += f" ({record['split_source']} splits)"
    print_table(title, SCORE_COLUMNS, score_rows(record))
    for single in record.get("retrainings", [record]):
        if "verdict" in single:
            print_verdict(single)
