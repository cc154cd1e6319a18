"""Scores of a run: linear probe, k-NN, clustering, link prediction; supervised runs by their predictions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spgcl.datasets import Splits
from spgcl.engine.device import scoring_device
from spgcl.errors import InputError, note, unknown
from spgcl.evaluation import cluster, knn, link_scores, probe, score_predictions, split_half, tuned_probe
from spgcl.evaluation.checks import task_digest
from spgcl.evaluation.reliability import mean_cosine, vector_reliability
from spgcl.evaluation.scores import METRICS
from spgcl.evaluation.verdict import on_vectors
from spgcl.files import replacing, steady
from spgcl.graph import Graph
from spgcl.io.records import read_record, require_part
from spgcl.io.shards import has_shards, read_shards
from spgcl.methods import Supervision, find
from spgcl.runs.baselines import beside
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
from spgcl.runs.schema import Evaluation, Labelled
from spgcl.runs.sources import Loaded, resolve_recorded, training_graph
from spgcl.runs.splits import chosen_splits
from spgcl.scale.sample import sampled_graph
from spgcl.scale.store import Store

# What an evaluation computes, as named by --only.
PARTS = ("probe", "baselines", "knn", "clustering", "links", "reliability")
# What a record has of them.
_FOUND = {"mean", "knn", "clustering", "link_prediction", "verdict"}
# Embeddings, labels, splits.
Task = tuple[NDArray[np.float32], NDArray[np.int64], Splits]
Progress = Callable[[Path, float], None]


@dataclass(frozen=True)
class Asked:
    """What an evaluation is asked for; see the options of `spgcl eval`.

    Attributes:
        protocol: "paper" or "tuned".
        labels: A file, a table or one label per node, see `spgcl.io.read_labels`; those of the run if None.
        label: Column of classes in the labels.
        id: Column of node ids in the labels.
        metric: One of `spgcl.evaluation.scores.METRICS`; that of the data set, or accuracy, if None.
        splits: See `spgcl.runs.splits.chosen_splits`; those that came with the labels if None.
        only: Names among `PARTS`.
    """

    protocol: str = "paper"
    labels: Any = None
    label: str | None = None
    id: str | None = None
    metric: str | None = None
    splits: Any = None
    only: Sequence[str] = PARTS

    def __post_init__(self) -> None:
        for part in self.only:
            if part not in PARTS:
                raise unknown("part of an evaluation", part, PARTS)
        if self.protocol not in ("paper", "tuned"):
            raise unknown("protocol", self.protocol, ["paper", "tuned"])
        if self.metric is not None and self.metric not in METRICS:
            raise unknown("metric", self.metric, METRICS)

    @property
    def words(self) -> dict[str, str]:
        """What can be asked for again by words: files and names, not objects in memory."""
        given = {name: getattr(self, name) for name in ("labels", "label", "id", "metric", "splits")}
        return {
            name: str(value.absolute() if isinstance(value, Path) else value)
            for name, value in given.items()
            if isinstance(value, str | Path)
        }


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


def labelled(folder: Path, run: Run, asked: Asked) -> Loaded:
    """The graph of a run, read again, with its labels or those given, and the splits that are asked for."""
    loaded = resolve_recorded(folder, run.graph, asked.labels, label=asked.label, id_column=asked.id)
    loaded = as_asked(loaded, asked)
    if not is_as_fitted(loaded.graph, run):
        note(f"{run.graph['source']} has changed since {folder} was fitted, the embeddings have not")
    if loaded.labels is None and find(run.method).supervised:
        raise InputError(f"{folder} has no labels to evaluate with; give them by --labels FILE")
    return loaded


def as_asked(loaded: Loaded, asked: Asked) -> Loaded:
    """The same graph and labels, with the metric and the splits that are asked for."""
    loaded = replace(loaded, metric=asked.metric or loaded.metric)
    if asked.splits is None:
        return loaded
    if loaded.labels is None:
        raise InputError(f"{loaded.name} has no labels to split; give them by --labels FILE")
    return replace(loaded, published=chosen_splits(asked.splits, loaded.labels, loaded.graph))


def is_as_fitted(graph: Graph, run: Run) -> bool:
    """Whether a graph, read again, is still the one that a run was trained on."""
    try:
        trained_on = training_graph(graph, run.graph["options"], run.hold_out_edges, run.seed)[0]
    except InputError:
        return False
    return bool(trained_on.digest == run.graph["digest"])


@dataclass(frozen=True)
class Evaluated:
    """Scores of a run, or of retrainings and of all together, by folder.

    Attributes:
        records: What `eval.json` holds; of several, all together come last.
        runs: The runs that were scored.
    """

    records: dict[Path, dict[str, Any]]
    runs: dict[Path, Run]

    @property
    def record(self) -> dict[str, Any]:
        """The scores of the run, or of all retrainings together."""
        return [*self.records.values()][-1]

    def write(self) -> None:
        """Write every `eval.json`; those that can be are written before an error is raised."""
        unwritten = None
        for folder, record in self.records.items():
            try:
                write_evaluation(folder, record, self.runs.get(folder))
            except InputError as error:
                unwritten = error
        if unwritten:
            raise unwritten


def evaluate(
    path: Path,
    asked: Asked,
    device: str = "auto",
    progress: Progress | None = None,
    loaded: Loaded | None = None,
) -> Evaluated:
    """Score a run, or every retraining in a folder and all of them together.

    Args:
        path: A run's folder, or one of several retrainings.
        asked: What is computed, and with which labels.
        device: Where to compute.
        progress: Called from time to time with a folder and the finished fraction of its probe.
        loaded: The graph with labels and splits, if it is read already.
    """
    folders = run_folders(path)
    loaded = loaded or labelled(*next(iter(folders.items())), asked)
    records: dict[Path, dict[str, Any]] = {}
    known = None
    for folder, run in folders.items():
        report = None if progress is None else partial(progress, folder)
        records[folder] = evaluate_run(folder, run, loaded, asked, device, report, known)
        known = records[folder].get("baselines")
    if len(records) > 1:
        records[path] = over_retrainings([*records.values()])
    return Evaluated(records, folders)


def evaluate_run(
    folder: Path,
    run: Run,
    loaded: Loaded,
    asked: Asked,
    device: str = "auto",
    progress: Callable[[float], None] | None = None,
    known: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Score a run's embeddings with labels, on edges that it held out, or else by their reliability.

    Args:
        folder: The run's folder.
        run: Its record.
        loaded: Its graph, see `labelled`.
        asked: What is computed.
        device: Where to compute.
        progress: Called from time to time with the finished fraction of the probe.
        known: Scores without training, if they are known from another retraining.
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
        if asked.words:
            record["asked"] = asked.words
        if find(run.method).supervised:
            record |= _by_predictions(folder, run, task, loaded.metric)
        else:
            record |= _with_labels(task, loaded.metric, asked, device, progress)
        if "baselines" in asked.only and "mean" in record:
            target = scoring_device(device)
            record["baselines"] = known or beside(folder, run, loaded, record["protocol"], target)
    if held_out is not None and "links" in asked.only:
        record["link_prediction"] = link_scores(embeddings, *held_out)
    if loaded.labels is None and "reliability" in asked.only:
        record |= without_labels(folder, run, loaded.graph, embeddings, device)
    if not _FOUND & record.keys():
        raise InputError(
            f"--only {','.join(asked.only)} finds nothing to compute for {folder}: probe, knn and clustering "
            "need labels, baselines also the probe, links --hold-out-edges, reliability a run without labels"
        )
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
    task: Task, metric: str, asked: Asked, device: str, progress: Callable[[float], None] | None
) -> dict[str, Any]:
    embeddings, labels, splits = task
    target = str(scoring_device(device))
    record: dict[str, Any] = {"metric": metric, "split_source": splits.source}
    if "probe" in asked.only:
        score = probe if asked.protocol == "paper" else tuned_probe
        record |= score(*task, metric=metric, device=target, progress=progress).as_record()
    if "knn" in asked.only:
        record["knn"] = knn(*task, metric=metric, device=target).as_record()
    if "clustering" in asked.only:
        record["clustering"] = cluster(embeddings, labels, device=target)
    return record


def _by_predictions(folder: Path, run: Run, task: Task, metric: str) -> dict[str, Any]:
    """Supervised models are neither probed nor scored on other splits: they have seen labels."""
    class_scores, labels, splits = task
    if Supervision.of(labels, splits).record() != run.supervision:
        raise InputError(
            f"{folder} was trained with other labels or splits; evaluate with the same, or fit it again"
        )
    scores = score_predictions(class_scores, labels, splits, metric=metric)
    return {**scores.as_record(), "split_source": splits.source}


def stored_evaluation(folder: Path) -> dict[str, Any] | None:
    """The scores in the folder of a run, or of retrainings, if there are any."""
    path, remedy = folder / "eval.json", f"run spgcl eval {folder} again"
    try:
        found: dict[str, Any] = read_record(path, Evaluation, remedy)
    except FileNotFoundError:
        return None
    if "mean" in found:
        require_part(path, found, Labelled, remedy)
    return found


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
    kept = ("dataset", "method", "protocol", "metric", "split_source", "task", "asked")
    summed: dict[str, Any] = {name: first[name] for name in kept if name in first}
    if "mean" in first:
        summed |= {**_spread([record["mean"] for record in records]), "std_over": "retrainings"}
        summed["splits"] = [score for record in records for score in record["splits"]]
    if "others" in first:
        summed["others"] = _means([record["others"] for record in records])
    if "baselines" in first:
        summed["baselines"] = first["baselines"]
    if "knn" in first:
        summed["knn"] = {**_spread([record["knn"]["mean"] for record in records]), "std_over": "retrainings"}
    for part in ("clustering", "link_prediction"):
        if part in first:
            summed[part] = _means([record[part] for record in records])
    return {**summed, "retrainings": records}


def _means(records: list[dict[str, float]]) -> dict[str, float]:
    return {name: _spread([record[name] for record in records])["mean"] for name in records[0]}


def _spread(values: list[float]) -> dict[str, float]:
    return {"mean": float(np.mean(values)), "std": float(np.std(values))}
