"""`spgcl eval`: linear probe, k-NN, clustering and link prediction; supervised runs by their predictions."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from spgcl.cli.options import DeviceOption, JsonOption, LabelsOption, ThreadsOption
from spgcl.cli.output import note, print_json, print_table
from spgcl.cli.progress import progress_line
from spgcl.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from spgcl.graph import Graph
    from spgcl.runs.record import Run
    from spgcl.runs.sources import Loaded


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
    import torch

    if threads:
        torch.set_num_threads(threads)
    folders = run_folders(run)
    loaded = _labelled(folders[0], labels)
    records, unwritten = [], None
    for folder in folders:
        records.append(_scores(folder, loaded, protocol, device, quiet=json))
        unwritten = _written(folder, records[-1]) or unwritten
    record = records[0]
    if len(records) > 1:
        record = _over_retrainings(records)
        unwritten = _written(run, record) or unwritten
    if json:
        print_json(record)
    else:
        _show(record)
    # Scores took a while: they are worth showing where they cannot be kept.
    if unwritten:
        raise unwritten


def run_folders(run: Path) -> list[Path]:
    """The run itself, or the retrainings that a folder holds."""
    if (run / "run.json").exists():
        return [run]
    numbers = [path.parent.name.removeprefix("seed-") for path in run.glob("seed-*/run.json")]
    folders = [run / f"seed-{number}" for number in sorted(map(int, filter(str.isdecimal, numbers)))]
    if not folders:
        raise InputError(f"{run} is not a run: it has no run.json (spgcl fit writes one)")
    _require_alike(folders)
    return folders


def _require_alike(folders: list[Path]) -> None:
    """Retrainings differ by their seed alone; a folder left over from other settings is told apart."""
    from spgcl.runs.record import read_run

    first = read_run(folders[0])
    for folder in folders[1:]:
        other = read_run(folder)
        for name in ("method", "settings", "hold_out_edges"):
            if getattr(other, name) != getattr(first, name):
                raise InputError(
                    f"{folder} was run with other {name} than {folders[0]}; remove it, or fit both again"
                )
        # Edges are held out by seed: then every retraining has a graph of its own.
        if not first.hold_out_edges and other.graph["digest"] != first.graph["digest"]:
            raise InputError(
                f"{folder} was run on another graph than {folders[0]}; remove it, or fit both again"
            )


def _labelled(folder: Path, labels: Path | None) -> "Loaded":
    from spgcl.runs.record import load_held_out, read_run
    from spgcl.runs.sources import resolve_recorded

    run = read_run(folder)
    loaded = resolve_recorded(run.graph, labels)
    if not is_as_fitted(loaded.graph, run):
        note(f"{run.graph['source']} has changed since {folder} was fitted, the embeddings have not")
    if loaded.labels is None and load_held_out(folder) is None:
        raise InputError(
            f"{folder} has no labels to evaluate with; give them by --labels FILE, "
            "or fit with --hold-out-edges for link prediction"
        )
    return loaded


def is_as_fitted(graph: "Graph", run: "Run") -> bool:
    """Whether a graph, read again, is still the one that a run was trained on."""
    from spgcl.runs.sources import training_graph

    try:
        trained_on = training_graph(graph, run.graph["options"], run.hold_out_edges, run.seed)[0]
    except InputError:
        return False
    return bool(trained_on.digest == run.graph["digest"])


def evaluate_one(
    folder: Path, loaded: "Loaded", protocol: str, device: str, *, quiet: bool = True
) -> dict[str, Any]:
    """Score one run, write its `eval.json` and return what it holds."""
    record = _scores(folder, loaded, protocol, device, quiet=quiet)
    if unwritten := _written(folder, record):
        raise unwritten
    return record


def _scores(folder: Path, loaded: "Loaded", protocol: str, device: str, *, quiet: bool) -> dict[str, Any]:
    import numpy as np

    from spgcl.evaluation import link_scores
    from spgcl.evaluation.task import task_digest
    from spgcl.methods import find
    from spgcl.runs.record import load_held_out, read_results, unfinished

    run, embeddings, node_ids = read_results(folder)
    if remark := unfinished(folder, run):
        note(remark)
    # Formats without types give whole numbers back for ids that were text.
    if not np.array_equal(node_ids.astype(str), loaded.graph.node_ids.astype(str)):
        raise InputError(f"the nodes of {run.graph['source']} are not those of {folder}; fit it again")
    record: dict[str, Any] = {"dataset": run.dataset, "method": run.method}
    if loaded.labels is not None and loaded.splits is not None:
        record["task"] = task_digest(loaded.graph, loaded.labels, loaded.splits)
    if loaded.labels is not None and find(run.method).supervised:
        record |= _by_predictions(folder, run, embeddings, loaded)
    elif loaded.labels is not None:
        record |= _with_labels(embeddings, loaded, protocol, device, str(folder), quiet=quiet)
    held_out = load_held_out(folder)
    if held_out is not None:
        record["link_prediction"] = link_scores(embeddings, *held_out)
    return record


def _with_labels(
    embeddings: "NDArray[np.float32]",
    loaded: "Loaded",
    protocol: str,
    device: str,
    title: str,
    *,
    quiet: bool,
) -> dict[str, Any]:
    from spgcl.engine.device import scoring_device
    from spgcl.evaluation import cluster, knn, probe, tuned_probe

    assert loaded.labels is not None
    assert loaded.splits is not None
    where = str(scoring_device(device))
    task = (embeddings, loaded.labels, loaded.splits)
    score = probe if protocol == "paper" else tuned_probe
    with progress_line(f"probe of {title}", total=1.0, amount="share", quiet=quiet) as update:
        say = update and (lambda share: update(completed=share))
        scores = score(*task, metric=loaded.metric, device=where, progress=say)
    return {
        **scores.as_record(),
        "protocol": protocol,
        "split_source": loaded.splits.source,
        "knn": knn(*task, metric=loaded.metric, device=where).as_record(),
        "clustering": cluster(embeddings, loaded.labels, device=where),
    }


def _by_predictions(
    folder: Path, run: "Run", class_scores: "NDArray[np.float32]", loaded: "Loaded"
) -> dict[str, Any]:
    """Models know labels: they are neither probed nor scored on splits other than their own."""
    from spgcl.evaluation import score_predictions
    from spgcl.methods import Supervision

    assert loaded.labels is not None
    assert loaded.splits is not None
    if Supervision.of(loaded.labels, loaded.splits).record() != run.supervision:
        raise InputError(
            f"{folder} was trained with other labels or splits; evaluate with the same, or fit it again"
        )
    scores = score_predictions(class_scores, loaded.labels, loaded.splits, metric=loaded.metric)
    return {**scores.as_record(), "split_source": loaded.splits.source}


def _written(folder: Path, record: dict[str, Any]) -> InputError | None:
    """Keep scores beside their run, or say why that cannot be."""
    from spgcl.files import replacing
    from spgcl.runs.record import to_json

    target = folder / "eval.json"
    try:
        with replacing(target) as path:
            path.write_text(to_json(record), encoding="utf-8")
    except OSError as error:
        return InputError(f"{target} cannot be written ({error.strerror or error}); the scores are not kept")
    return None


def _over_retrainings(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Sum up full retrainings: the deviation is over them, each counted by its own mean."""
    first = records[0]
    kept = ("dataset", "method", "protocol", "metric", "split_source")
    summed: dict[str, Any] = {name: first[name] for name in kept if name in first}
    if "mean" in first:
        summed |= {**_spread([record["mean"] for record in records]), "std_over": "retrainings"}
        summed["splits"] = [score for record in records for score in record["splits"]]
    if "knn" in first:
        summed["knn"] = {**_spread([record["knn"]["mean"] for record in records]), "std_over": "retrainings"}
    for part in ("clustering", "link_prediction"):
        if part in first:
            summed[part] = {
                name: _spread([record[part][name] for record in records])["mean"] for name in first[part]
            }
    return {**summed, "retrainings": records}


def _spread(values: list[float]) -> dict[str, float]:
    import numpy as np

    return {"mean": float(np.mean(values)), "std": float(np.std(values))}


def _show(record: dict[str, Any]) -> None:
    from spgcl.evaluation.scores import scored_by

    rows: list[list[str]] = []
    title = f"{record['method']} on {record['dataset']}"
    if "mean" in record:
        title += f" ({record['split_source']} splits)"
        rows.append(_scored(scored_by(record["protocol"]), record, record))
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
