"""A run on disk as an object, whose methods are the commands that take a run."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from spgcl.datasets import Dataset
from spgcl.errors import note
from spgcl.face.request import device_of
from spgcl.face.vectors import Vectors
from spgcl.graph import Graph
from spgcl.graph.display import aligned, rows
from spgcl.io import read_embedding_file
from spgcl.report.words import SCORE_COLUMNS, judgement, score_rows, score_text
from spgcl.report.write import Wanted, write_report
from spgcl.runs.embed import embed_graph, embed_read
from spgcl.runs.evaluate import PARTS, Asked, evaluate, run_folders
from spgcl.runs.kept import in_memory, options_of, read_given
from spgcl.runs.record import Run, read_results, read_run
from spgcl.training.fitting import as_learned


class Evaluation(dict[str, Any]):
    """Scores of a run, the content of its `eval.json`; printed as the command prints them."""

    def __str__(self) -> str:
        table = aligned([SCORE_COLUMNS, *score_rows(self)])
        return "\n".join([*table, *judgement(self), *self.get("verdict", [])])

    def __repr__(self) -> str:
        return f"Evaluation({score_text(self) or 'without labels'})"

    def _repr_html_(self) -> str:
        said = [*judgement(self), *self.get("verdict", [])]
        return rows(" ".join(said), list(SCORE_COLUMNS), score_rows(self))


class _Judged:
    """What is asked of a run or of retrainings by their folder: scores and the page."""

    folder: Path

    def evaluate(
        self,
        labels: Any = None,
        *,
        protocol: str = "paper",
        label: str | None = None,
        id: str | None = None,
        metric: str | None = None,
        splits: Any = None,
        only: str | tuple[str, ...] = PARTS,
        device: str = "auto",
        threads: int | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> Evaluation:
        """Score the vectors with labels, or say what can be said without; also written to `eval.json`.

        Args:
            labels: A file, a table by node id, a dictionary, or one label per node; those of the run if None.
            protocol: "paper" or "tuned".
            label: Column of classes in the labels.
            id: Column of node ids in the labels.
            metric: "accuracy", "balanced_accuracy", "macro_f1" or "roc_auc".
            splits: "60/20/20", "5-fold", a file or a table of parts by node id, or masks.
            only: Parts to compute: probe, baselines, knn, clustering, links, reliability.
            device: Where to compute.
            threads: CPU threads.
            progress: Called now and then with the finished fraction of the probe.
        """
        device_of(device, threads)
        parts = tuple(only.split(",")) if isinstance(only, str) else tuple(only)
        asked = Asked(protocol, labels, label, id, metric, splits, parts)
        found = evaluate(self.folder, asked, device, progress and _of_fraction(progress))
        found.write()
        return Evaluation(found.record)

    def report(
        self,
        out: str | PathLike[str] | None = None,
        *,
        labels: Any = None,
        label: str | None = None,
        nodes: str | PathLike[str] | None = None,
        id: str | None = None,
        projection: Literal["auto", "umap", "pca"] = "auto",
        tensorboard: bool = False,
        protocol: Literal["paper", "tuned"] | None = None,
        device: str = "auto",
        threads: int | None = None,
    ) -> Path:
        """Write the page of the run and return its path.

        Args:
            out: The file; `report.html` in the run's folder by default.
            labels: As for `evaluate`; an evaluation of the same labels is reused.
            label: Column of classes in the labels.
            nodes: A table by node id whose columns can colour the map.
            id: Column of node ids in that table.
            projection: "auto", "umap" or "pca".
            tensorboard: Also write scalars and vectors for TensorBoard.
            protocol: Probe of the scores, see `evaluate`; that of an earlier evaluation if None.
            device: Where to compute.
            threads: CPU threads.
        """
        device_of(device, threads)
        table, path = (None if one is None else Path(one) for one in (nodes, out))
        wanted = Wanted(labels, label, table, id, projection, tensorboard, device, protocol)
        return Path(write_report([self.folder], path, wanted)["report"])


class FittedRun(Vectors, _Judged):
    """A run on disk, and what can be done with it.

    Attributes:
        folder: Its folder.
        record: The content of its `run.json`.
    """

    def __init__(self, folder: str | PathLike[str]) -> None:
        self.folder = Path(folder)
        self.record: Run = read_run(self.folder)

    def _read(self) -> tuple[NDArray[np.float32], NDArray[Any]]:
        return self._results

    @cached_property
    def _results(self) -> tuple[NDArray[np.float32], NDArray[Any]]:
        return read_results(self.folder)[1:]

    def embed(
        self,
        graph: Any,
        features: Any = None,
        *,
        device: str = "auto",
        threads: int | None = None,
        **reading: Any,
    ) -> Vectors:
        """Embed another or a grown graph with the weights of the run, without training.

        Args:
            graph: A data set's name, a path, or anything `Graph.of` reads.
            features: A path or an object; those of the run's graph had the same columns.
            device: Where to compute.
            threads: CPU threads; those of the run by default.
            reading: How the graph is read, see `fit`.
        """
        options = options_of(reading, features)
        if isinstance(graph, str | PathLike) and not in_memory(features):
            read, vectors = embed_graph(self.folder, str(graph), options, device=device, threads=threads)
            return Vectors(vectors, read.node_ids)
        recorded = self.record.graph
        directed, structural = recorded["directed"], recorded["options"].get("structural")
        has_features = features is not None or isinstance(graph, Graph | Dataset)
        options = replace(
            options, directed=directed, structural=None if has_features else options.structural or structural
        )
        read = read_given(graph, options, features, recorded.get("encoding"))
        for remark in read.notes:
            note(remark)
        matched = as_learned(
            read,
            digest=recorded["digest"],
            directed=directed,
            num_features=recorded["num_features"],
            feature_names=recorded.get("feature_names", ()),
        )
        vectors = embed_read(self.folder, self.record, matched, device=device, threads=threads)
        return Vectors(vectors, matched.node_ids)

    @property
    def _pairs(self) -> dict[str, Any]:
        run = self.record
        return {
            "folder": str(self.folder),
            "method": run.method,
            "graph": run.dataset,
            "nodes": f"{run.graph['num_nodes']:,}",
            "steps": f"{run.steps:,}",
            "status": run.status,
        }

    def __repr__(self) -> str:
        run = self.record
        return f"FittedRun({str(self.folder)!r}: {run.method} on {run.dataset}, {run.status})"


class Retrainings(_Judged, Sequence[FittedRun]):
    """Runs in one folder that differ by their seeds; their scores have a deviation over retrainings.

    Attributes:
        folder: The folder that holds theirs.
    """

    def __init__(self, folder: str | PathLike[str]) -> None:
        self.folder = Path(folder)
        self._runs = [FittedRun(one) for one in run_folders(self.folder)]

    @overload
    def __getitem__(self, index: int) -> FittedRun: ...
    @overload
    def __getitem__(self, index: slice) -> list[FittedRun]: ...
    def __getitem__(self, index: int | slice) -> FittedRun | list[FittedRun]:
        """The run with this position, in order of seeds."""
        return self._runs[index]

    def __len__(self) -> int:
        return len(self._runs)

    def __repr__(self) -> str:
        return f"Retrainings({str(self.folder)!r}: {len(self)} runs, {self[0].record.method})"


def open_run(path: str | PathLike[str]) -> Any:
    """A run by its folder, as `FittedRun`, several retrainings, as `Retrainings`, or a file, as `Vectors`."""
    if Path(path).is_file():
        return Vectors(*read_embedding_file(path))
    return FittedRun(path) if [*run_folders(Path(path))] == [Path(path)] else Retrainings(path)


def _of_fraction(progress: Callable[[float], None]) -> Callable[[Path, float], None]:
    def report(folder: Path, fraction: float) -> None:
        del folder
        progress(fraction)

    return report
