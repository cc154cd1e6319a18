"""Trains a run and writes it to disk: from the start or from a checkpoint, usable even when interrupted."""

import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from spgcl.engine.device import forget_peak_memory, peak_memory_mib
from spgcl.errors import InputError
from spgcl.evaluation.verdict import verdict
from spgcl.files import is_part, replacing
from spgcl.graph import Graph
from spgcl.io import require_ids, write_embeddings
from spgcl.methods import Supervision
from spgcl.runs.folder import CHECKPOINT, is_broken_run, remove_run, results_in, tidy
from spgcl.runs.plane import principal_plane
from spgcl.runs.record import (
    Run,
    load_checkpoint,
    read_run,
    save_checkpoint,
    save_held_out,
    save_method,
    write_run,
)
from spgcl.runs.sources import HeldOut
from spgcl.runs.together import Job
from spgcl.scale import fit as stored
from spgcl.scale.engines import Alone, Engine
from spgcl.scale.store import Store
from spgcl.training.fitting import Fitted
from spgcl.training.loop import Controls
from spgcl.training.step import Checkpoint

# A run is only continued if these are the same, besides settings, graph and labels: they decide its bytes.
DECIDING = (
    "method",
    "seed",
    "device",
    "threads",
    "precision",
    "deterministic",
    "workers",
    "hold_out_edges",
    "embedding_format",
)


def open_folder(folder: Path, run: Run, *, resume: bool, overwrite: bool) -> Run | None:
    """Check the folder of a run; returns the earlier record if that run is to be continued.

    Nothing is written or removed here: an earlier run stays until there is something to replace it with.
    """
    _require_writable(folder)
    if not folder.exists() or all(is_part(path) for path in folder.iterdir()):
        return None
    if not (folder / "run.json").exists():
        if (resume or overwrite) and is_broken_run(folder):
            return None
        raise InputError(f"{folder} exists and is not a run; choose another --out")
    if resume:
        earlier = read_run(folder)
        _require_same(earlier, run, folder)
        return earlier
    if not overwrite:
        raise InputError(
            f"{folder} holds a run already; continue it with --resume or replace it with --overwrite"
        )
    return None


def _require_writable(folder: Path) -> None:
    nearest = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        what = "is read-only" if nearest.is_dir() else "is a file"
        raise InputError(f"{folder} cannot be written, as {nearest} {what}; choose another --out")


def _require_same(earlier: Run, run: Run, folder: Path) -> None:
    advice = "resume with the same, or start over with --overwrite"
    before, now = (
        {name: getattr(record, name) for name in DECIDING} | record.settings for record in (earlier, run)
    )
    for name in {**before, **now}:
        if before.get(name) != now.get(name):
            values = f"{before.get(name)!r}, now it is {now.get(name)!r}"
            raise InputError(f"{folder} was run with {name} {values}; {advice}")
    if earlier.graph.get("digest") != run.graph["digest"]:
        source = earlier.graph.get("source")
        raise InputError(f"{folder} was run on another graph ({source!r} as it was then); {advice}")
    if earlier.supervision != run.supervision:
        raise InputError(f"{folder} was trained with other labels or splits; {advice}")


def fit_run(
    folder: Path,
    graph: Graph,
    run: Run,
    *,
    replace_earlier: bool = False,
    supervision: Supervision | None = None,
    held_out: HeldOut | None = None,
    controls: Controls | None = None,
    engine: Engine | None = None,
) -> Run:
    """Train, embed and write a run, with its results filled in; continues from the folder's checkpoint.

    The folder is first written to when there is a checkpoint or a result: a run that fails before that leaves
    no trace. Results replace earlier ones together. With `replace_earlier`, no checkpoint is read and the
    earlier run's files go. Of the controls, checkpoints are those of the folder.
    """
    store = graph if isinstance(graph, Store) else None
    if store is None:
        require_ids(graph.node_ids, run.embedding_format)
    device = torch.device(run.device)
    forget_peak_memory(device)
    writer = _Writer(folder, run, replace_earlier, held_out)
    engine = engine or Alone()
    controls = replace(controls or Controls(), save=writer.save)
    fitted = _with_retries(writer, graph, supervision, controls, engine)
    started = time.perf_counter()
    embeddings = fitted.embed() if store is None else None
    run.seconds = {**fitted.seconds, "embed": time.perf_counter() - started}
    writer.begin()
    history = fitted.history
    run.status = "finished" if history.finished else "interrupted"
    run.steps, run.resumed_from = len(history.losses), history.resumed_from
    run.peak_memory_mib = peak_memory_mib(device)
    channels = fitted.method.findings()
    run.findings = {"channels": channels, "verdict": verdict(channels)} if channels else {}
    run.history = {"loss": history.losses, "observations": history.observations}
    with results_in(folder) as target:
        if store is not None:
            _write_stored(target, fitted, run, store, engine)
        elif embeddings is not None:
            _write_results(target, fitted, run, embeddings, graph.node_ids)
        if target != folder:
            writer.repeat(target)
        # Last: with it, the folder holds the results.
        write_run(target, run)
    if history.finished:
        tidy(folder)
    return run


def _with_retries(
    writer: "_Writer", graph: Graph, supervision: Supervision | None, controls: Controls, engine: Engine
) -> Fitted:
    """Train from the last checkpoint, and again if a process of the engine is lost."""
    while True:
        fresh = writer.replace_earlier and not writer.begun
        start = None if fresh else load_checkpoint(writer.folder)
        job = Job(writer.run, start)
        try:
            fitted = job.fitted(graph, supervision, replace(controls, group=lambda: engine.group), engine)
            break
        except RuntimeError as error:
            if not engine.recovered(error):
                raise
    engine.end()
    return fitted


def _write_results(
    folder: Path, fitted: Fitted, run: Run, embeddings: NDArray[np.float32], node_ids: NDArray[Any]
) -> None:
    with ThreadPoolExecutor(1) as background:
        weights = background.submit(save_method, folder, fitted.method, run)
        plane = principal_plane(embeddings) if run.embedding_format == "parquet" else None
        write_embeddings(folder, embeddings, node_ids, run.embedding_format, plane)
        weights.result()


def _write_stored(folder: Path, fitted: Fitted, run: Run, store: Store, engine: Engine) -> None:
    """Embed a graph larger than memory; a folder of a killed process is continued."""
    started = time.perf_counter()
    folder.mkdir(exist_ok=True)
    engine.tell(folder)
    stored.embed(store, fitted.method, folder, workers=engine.workers)
    run.seconds["embed"] = time.perf_counter() - started
    save_method(folder, fitted.method, run)


@dataclass
class _Writer:
    """Writes a run's record and held-out edges once, before its first checkpoint or result."""

    folder: Path
    run: Run
    replace_earlier: bool
    held_out: HeldOut | None
    begun: bool = False

    def begin(self) -> None:
        if self.begun:
            return
        if self.replace_earlier:
            remove_run(self.folder)
        # A run that is continued has its record, which stays true of its results until there are others.
        if not (self.folder / "run.json").exists():
            write_run(self.folder, self.run)
        if self.held_out is not None:
            save_held_out(self.folder, self.held_out)
        self.begun = True

    def save(self, checkpoint: Checkpoint) -> None:
        # The next step will fail with its loss; until then the last good checkpoint stays.
        if checkpoint.is_finite():
            self.begin()
            save_checkpoint(self.folder, checkpoint)

    def repeat(self, folder: Path) -> None:
        """Write into another folder what this one needs besides results."""
        if self.held_out is not None:
            save_held_out(folder, self.held_out)
        if self.run.status != "finished":
            with replacing(folder / CHECKPOINT) as path:
                shutil.copyfile(self.folder / CHECKPOINT, path)


def describe_source(
    source: str, options: dict[str, Any], labels: Path | None, graph: Graph
) -> dict[str, Any]:
    """The record of a graph: its source, how it was read, its digest and shape."""
    return {
        "source": source,
        "options": options,
        "labels": str(labels.absolute()) if labels else None,
        "digest": graph.digest,
        "num_nodes": graph.num_nodes,
        "num_edges": graph.num_edges,
        "num_features": graph.num_features,
        "directed": graph.directed,
        "weighted": graph.weights is not None,
        "feature_names": list(graph.feature_names),
        **({"encoding": graph.encoding} if graph.encoding else {}),
    }
