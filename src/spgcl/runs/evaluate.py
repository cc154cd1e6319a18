"""Scores of a run: linear probe, k-NN, clustering, link prediction; supervised runs by their predictions."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spgcl.datasets import Splits
from spgcl.engine.device import scoring_device
from spgcl.errors import InputError, note
from spgcl.evaluation import cluster, knn, link_scores, probe, score_predictions, split_half, tuned_probe
from spgcl.evaluation.checks import task_digest
from spgcl.evaluation.reliability import mean_cosine, vector_reliability
from spgcl.evaluation.verdict import on_vectors
from spgcl.files import replacing, steady
from spgcl.graph import Graph
from spgcl.io.shards import has_shards, read_shards
from spgcl.methods import Supervision, find
from spgcl.runs.folder import settle
from spgcl.runs.record import (
    Run,
    deriving,
    load_held_out,
    load_method,
    read_run,
    read_vectors,
    require_unchanged,
    to_json,
    unfinished,
)
from spgcl.runs.sources import Loaded, resolve_recorded, training_graph
from spgcl.scale.sample import sampled_graph
from spgcl.scale.store import Store

# Embeddings, labels, splits.
Task = tuple[NDArray[np.float32], NDArray[np.int64], Splits]


def run_folders(path: Path) -> dict[Path, Run]:
    """The record of a run by its folder, or those of the retrainings that a folder holds."""
    settle(path)
    found = [] if (path / "run.json").exists() else path.glob("seed-*/run.json")
    numbers = [record.parent.name.removeprefix("seed-") for record in found]
    folders = [path / f"seed-{number}" for number in sorted(map(int, filter(str.isdecimal, numbers)))]
    runs = {folder: read_run(folder) for folder in folders or [path]}
    _require_alike(runs)
    return runs


def _require_alike(runs: dict[Path, Run]) -> None:
    """Refuse retrainings that differ by more than their seed, such as one left over from other settings."""
    (first_folder, first), *others = runs.items()
    for folder, other in others:
        for name in ("method", "settings", "hold_out_edges"):
            if getattr(other, name) != getattr(first, name):
                raise InputError(
                    f"{folder} was run with other {name} than {first_folder}; remove it, or fit both again"
                )
        # Which edges are held out depends on the seed: then every retraining has a graph of its own.
        if not first.hold_out_edges and other.graph["digest"] != first.graph["digest"]:
            raise InputError(
                f"{folder} was run on another graph than {first_folder}; remove it, or fit both again"
            )


def labelled(folder: Path, run: Run, labels: Path | None = None) -> Loaded:
    """The graph of a run, read again, with its labels or those given."""
    loaded = resolve_recorded(run.graph, labels)
    if not is_as_fitted(loaded.graph, run):
        note(f"{run.graph['source']} has changed since {folder} was fitted, the embeddings have not")
    if loaded.labels is None and find(run.method).supervised:
        raise InputError(f"{folder} has no labels to evaluate with; give them by --labels FILE")
    return loaded


def is_as_fitted(graph: Graph, run: Run) -> bool:
    """Whether a graph, read again, is still the one that a run was trained on."""
    try:
        trained_on = training_graph(graph, run.graph["options"], run.hold_out_edges, run.seed)[0]
    except InputError:
        return False
    return bool(trained_on.digest == run.graph["digest"])


def evaluate_run(
    folder: Path,
    run: Run,
    loaded: Loaded,
    protocol: str = "paper",
    device: str = "auto",
    progress: Callable[[float], None] | None = None,
) -> dict[str, Any]:
    """Score a run's embeddings with labels, on edges that it held out, or else by their reliability.

    Args:
        folder: The run's folder.
        run: Its record.
        loaded: Its graph, see `labelled`.
        protocol: "paper" or "tuned".
        device: Where to compute.
        progress: Called from time to time with the finished fraction of the probe.
    """
    with steady(folder):
        require_unchanged(folder, run)
        embeddings, node_ids, scored = _vectors(folder, run, loaded)
        held_out = load_held_out(folder)
    note(unfinished(folder, run))
    require_same_nodes(node_ids, loaded.graph, folder, run)
    record: dict[str, Any] = {"dataset": run.dataset, "method": run.method}
    if loaded.labels is not None and loaded.splits is not None:
        task = (embeddings, loaded.labels[scored], _splits_of(loaded.splits, scored))
        record["task"] = task_digest(loaded.graph, loaded.labels, loaded.splits)
        if find(run.method).supervised:
            record |= _by_predictions(folder, run, task, loaded.metric)
        else:
            record |= _with_labels(task, loaded.metric, protocol, device, progress)
    if held_out is not None:
        record["link_prediction"] = link_scores(embeddings, *held_out)
    if loaded.labels is None:
        record |= without_labels(folder, run, loaded.graph, embeddings, device)
    require_unchanged(folder, run)
    return record


def _vectors(
    folder: Path, run: Run, loaded: Loaded
) -> tuple[NDArray[np.float32], NDArray[Any], slice | NDArray[np.bool_]]:
    """Vectors to score, the ids of all nodes, and which of them have vectors: on disk, labelled ones only."""
    if not isinstance(loaded.graph, Store) or not has_shards(folder) or loaded.labels is None:
        return *read_vectors(folder, run), slice(None)
    scored = loaded.labels >= 0
    vectors, ids, before = [], [], 0
    for part, found in read_shards(folder):
        vectors.append(found[scored[before : before + len(found)]])
        ids.append(part)
        before += len(found)
    return np.concatenate(vectors), np.concatenate(ids), scored


def _splits_of(splits: Splits, scored: slice | NDArray[np.bool_]) -> Splits:
    train, validation, test = (part[:, scored] for part in (splits.train, splits.validation, splits.test))
    return Splits(train, validation, test, source=splits.source)


def without_labels(
    folder: Path, run: Run, graph: Graph, embeddings: NDArray[np.float32], device: str = "auto"
) -> dict[str, Any]:
    """What can be said of a run without labels: how reliable its graph and its vectors are, and how alike."""
    if isinstance(graph, Store):
        return run.findings or split_half(sampled_graph(graph), device=scoring_device(device))
    trained_on = training_graph(graph, run.graph["options"], run.hold_out_edges, run.seed)[0]
    target = scoring_device(device)
    vectors = vector_reliability(load_method(folder).to(target), trained_on, device=target)
    found = run.findings or split_half(trained_on, device=target)
    cosine = mean_cosine(embeddings)
    sentences = [*found["verdict"], *on_vectors(cosine)]
    return {**found, "verdict": sentences, "vectors": vectors, "mean_cosine": cosine}


def require_same_nodes(node_ids: NDArray[Any], graph: Graph, folder: Path, run: Run) -> None:
    """Refuse a graph whose nodes are not those that a run embedded."""
    # Formats without types give whole numbers back for ids that were text.
    if not np.array_equal(node_ids.astype(str), graph.node_ids.astype(str)):
        raise InputError(f"the nodes of {run.graph['source']} are not those of {folder}; fit it again")


def _with_labels(
    task: Task, metric: str, protocol: str, device: str, progress: Callable[[float], None] | None
) -> dict[str, Any]:
    embeddings, labels, splits = task
    target = str(scoring_device(device))
    score = probe if protocol == "paper" else tuned_probe
    return {
        **score(*task, metric=metric, device=target, progress=progress).as_record(),
        "split_source": splits.source,
        "knn": knn(*task, metric=metric, device=target).as_record(),
        "clustering": cluster(embeddings, labels, device=target),
    }


def _by_predictions(folder: Path, run: Run, task: Task, metric: str) -> dict[str, Any]:
    """Supervised models are neither probed nor scored on other splits: they have seen labels."""
    class_scores, labels, splits = task
    if Supervision.of(labels, splits).record() != run.supervision:
        raise InputError(
            f"{folder} was trained with other labels or splits; evaluate with the same, or fit it again"
        )
    scores = score_predictions(class_scores, labels, splits, metric=metric)
    return {**scores.as_record(), "split_source": splits.source}


def write_evaluation(folder: Path, record: dict[str, Any], run: Run | None = None) -> None:
    """Write scores into the folder of their run, or of the retrainings, as `eval.json`."""
    try:
        alone = deriving(folder, run) if run else steady(folder, change=True)
        with alone, replacing(folder / "eval.json") as path:
            path.write_text(to_json(record), encoding="utf-8")
    except InputError as error:
        raise InputError(f"{error}; the scores are not kept") from None


def over_retrainings(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Summarise full retrainings; the deviation is over the means of the retrainings."""
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
    return {"mean": float(np.mean(values)), "std": float(np.std(values))}
