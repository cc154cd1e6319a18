"""`spgcl eval`: linear probe, k-NN, clustering and link prediction of a run's embeddings."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from spgcl.cli.options import DeviceOption, GraphOptions, JsonOption, LabelsOption, ThreadsOption
from spgcl.cli.output import print_json, print_table
from spgcl.errors import InputError

if TYPE_CHECKING:
    from spgcl.cli.graphs import Loaded


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
    folders = _folders(run)
    loaded = _labelled(folders[0], labels)
    records = [_evaluate_one(folder, loaded, protocol, device) for folder in folders]
    record = records[0]
    if len(records) > 1:
        record = _over_retrainings(records)
        _write(run, record)
    if json:
        print_json(record)
    else:
        _show(record)


def _folders(run: Path) -> list[Path]:
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
    from spgcl.storage import read_run

    first = read_run(folders[0])
    for folder in folders[1:]:
        other = read_run(folder)
        for name in ("method", "settings", "hold_out_edges"):
            if getattr(other, name) != getattr(first, name):
                raise InputError(
                    f"{folder} was run with other {name} than {folders[0]}; remove it, or fit both again"
                )


def _labelled(folder: Path, labels: Path | None) -> "Loaded":
    from spgcl.cli.graphs import resolve
    from spgcl.storage import read_run

    graph = read_run(folder).graph
    recorded = Path(graph["labels"]) if graph["labels"] else None
    loaded = resolve(graph["source"], GraphOptions.recorded(graph["options"]), labels or recorded)
    if loaded.labels is None:
        raise InputError(f"{folder} has no labels to evaluate with; give them by --labels FILE")
    return loaded


def _evaluate_one(folder: Path, loaded: "Loaded", protocol: str, device: str) -> dict[str, Any]:
    import numpy as np

    from spgcl.estimator import choose_device
    from spgcl.evaluation import cluster, knn, link_scores, probe, tuned_probe
    from spgcl.storage import load_held_out, read_results

    run, embeddings, node_ids = read_results(folder)
    # Formats without types give whole numbers back for ids that were text.
    if not np.array_equal(node_ids.astype(str), loaded.graph.node_ids.astype(str)):
        raise InputError(f"the nodes of {run.graph['source']} are not those of {folder}; fit it again")
    assert loaded.labels is not None
    assert loaded.splits is not None
    score = probe if protocol == "paper" else tuned_probe
    where = str(choose_device(device))
    scores = score(embeddings, loaded.labels, loaded.splits, metric=loaded.metric, device=where)
    record = {
        "dataset": run.dataset,
        "method": run.method,
        **scores.as_record(),
        "protocol": protocol,
        "split_source": loaded.splits.source,
        "knn": knn(embeddings, loaded.labels, loaded.splits, metric=loaded.metric).as_record(),
        "clustering": cluster(embeddings, loaded.labels),
    }
    held_out = load_held_out(folder)
    if held_out is not None:
        record["link_prediction"] = link_scores(embeddings, *held_out)
    _write(folder, record)
    return record


def _write(folder: Path, record: dict[str, Any]) -> None:
    from spgcl.files import replacing
    from spgcl.storage import to_json

    with replacing(folder / "eval.json") as path:
        path.write_text(to_json(record), encoding="utf-8")


def _over_retrainings(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Sum up full retrainings: the deviation is over them, each counted by its own mean."""
    import numpy as np

    means = [record["mean"] for record in records]
    first = records[0]
    return {
        **{name: first[name] for name in ("dataset", "method", "protocol", "metric", "split_source")},
        "mean": float(np.mean(means)),
        "std": float(np.std(means)),
        "std_over": "retrainings",
        "splits": [score for record in records for score in record["splits"]],
        "retrainings": records,
        "knn": {"mean": float(np.mean([record["knn"]["mean"] for record in records]))},
        **{
            part: {name: float(np.mean([record[part][name] for record in records])) for name in first[part]}
            for part in ("clustering", "link_prediction")
            if part in first
        },
    }


def _show(record: dict[str, Any]) -> None:
    units = {"retrainings": len(record.get("retrainings", ())), "splits": 0, "probe starts": 0}
    units["splits"] = len({score["split"] for score in record["splits"]})
    units["probe starts"] = len({score["start"] for score in record["splits"]})
    over = record["std_over"]
    rows = [
        [
            f"linear probe ({record['protocol']})",
            record["metric"],
            record["mean"],
            record["std"],
            f"{units[over]} {over}",
        ]
    ]
    knn = record["knn"]
    rows.append(
        [
            "k-NN",
            record["metric"],
            knn["mean"],
            knn.get("std"),
            f"{units.get(knn.get('std_over', over))} {knn.get('std_over', over)}",
        ]
    )
    rows += [["k-means", name, value, None, ""] for name, value in record["clustering"].items()]
    rows += [
        ["link prediction", name, value, None, ""]
        for name, value in record.get("link_prediction", {}).items()
    ]
    cells = [
        [row[0], row[1], f"{row[2]:.2f}", "-" if row[3] is None else f"{row[3]:.2f}", row[4]] for row in rows
    ]
    title = f"{record['method']} on {record['dataset']} ({record['split_source']} splits)"
    print_table(title, ["evaluation", "metric", "percent", "std", "over"], cells)
