"""`spgcl eval`: linear probe, k-NN, clustering and link prediction; supervised runs by their predictions."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from spgcl.cli.options import DeviceOption, JsonOption, LabelsOption, ThreadsOption, start_on
from spgcl.cli.output import print_json, print_table
from spgcl.cli.progress import progress_line
from spgcl.errors import InputError


def evaluate(
    run: Annotated[Path, typer.Argument(help="A run folder, or one that holds several retrainings.")],
    protocol: Annotated[
        Literal["paper", "tuned"],
        typer.Option(
            "--protocol", help="paper: 1000 epochs of Adam; tuned: L2 strength chosen on validation."
        ),
    ] = "paper",
    labels: LabelsOption = None,
    device: DeviceOption = "auto",
    threads: ThreadsOption = None,
    json: JsonOption = False,
) -> None:
    """Score a run's embeddings with labels that training never saw."""
    from spgcl.runs.evaluate import evaluate_run, labelled, over_retrainings, run_folders, write_evaluation

    start_on("cpu", threads)
    folders = run_folders(run)
    loaded = labelled(*next(iter(folders.items())), labels)
    records, unwritten = [], None
    for folder in folders:
        with progress_line(f"probe of {folder}", total=1.0, amount="fraction", quiet=json) as update:
            progress = update and (lambda fraction, update=update: update(completed=fraction))
            records.append(evaluate_run(folder, folders[folder], loaded, protocol, device, progress))
    record = over_retrainings(records) if len(records) > 1 else records[0]
    kept = dict(zip(folders, records, strict=True)) | {run: record}
    for folder, found in kept.items():
        try:
            write_evaluation(folder, found)
        except InputError as error:
            unwritten = error
    if json:
        print_json(record)
    else:
        _show(record)
    # Scores took a while: they are worth showing even if they cannot be kept.
    if unwritten:
        raise unwritten


def _show(record: dict[str, Any]) -> None:
    from spgcl.evaluation.scores import PROTOCOLS

    rows: list[list[str]] = []
    title = f"{record['method']} on {record['dataset']}"
    if "mean" in record:
        title += f" ({record['split_source']} splits)"
        rows.append(_scored(PROTOCOLS[record["protocol"]], record, record))
    if "knn" in record:
        rows.append(_scored("k-NN", record, record["knn"]))
    for part, name in (("k-means", "clustering"), ("link prediction", "link_prediction")):
        rows += [[part, metric, f"{value:.2f}", "-", ""] for metric, value in record.get(name, {}).items()]
    print_table(title, ["evaluation", "metric", "percent", "std", "over"], rows)


def _scored(part: str, record: dict[str, Any], scores: dict[str, Any]) -> list[str]:
    over = scores["std_over"]
    units = {
        "retrainings": len(record.get("retrainings", ())),
        "splits": len({score["split"] for score in record["splits"]}),
        **dict.fromkeys(
            ("probe starts", "training starts"), len({score["start"] for score in record["splits"]})
        ),
    }
    counted = over if units[over] != 1 else over.removesuffix("s")
    spread = f"{scores['std']:.2f}" if units[over] > 1 else "-"
    return [part, record["metric"], f"{scores['mean']:.2f}", spread, f"{units[over]} {counted}"]
