"""From a graph and settings to a run on disk: start it, continue it, leave it usable when stopped."""

import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from spgcl.errors import InputError
from spgcl.graph import Graph
from spgcl.io import write_embeddings
from spgcl.methods import create
from spgcl.storage import (
    Run,
    drop_checkpoint,
    load_checkpoint,
    read_run,
    save_checkpoint,
    save_method,
    write_run,
)
from spgcl.training import Observer, train

# What a run folder holds; only these are removed when a run is overwritten.
RUN_FILES = (
    "run.json",
    "model.safetensors",
    "checkpoint.safetensors",
    "embeddings.parquet",
    "embeddings.npy",
    "embeddings.csv",
    "nodes.txt",
    "held_out_edges.npz",
    "eval.json",
    "report.html",
)
# A run continues only under what decides its bytes.
DECIDING = ("method", "settings", "seed", "graph", "device", "threads", "hold_out_edges")


def open_folder(folder: Path, run: Run, *, resume: bool, overwrite: bool) -> Run | None:
    """Make the folder of a run ready; give back the earlier record when that run is to be continued.

    Nothing is removed before everything else has been checked.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; choose another --out")
    if not folder.exists() or not any(folder.iterdir()):
        return None
    if not (folder / "run.json").exists():
        raise InputError(f"{folder} exists and is not a run; choose another --out")
    if resume:
        earlier = read_run(folder)
        _require_same(earlier, run, folder)
        return earlier
    if not overwrite:
        raise InputError(
            f"{folder} holds a run already; continue it with --resume or replace it with --overwrite"
        )
    for name in RUN_FILES:
        (folder / name).unlink(missing_ok=True)
    return None


def _require_same(earlier: Run, run: Run, folder: Path) -> None:
    for name in DECIDING:
        before, now = getattr(earlier, name), getattr(run, name)
        if name == "graph":
            before, now = before.get("digest"), now["digest"]
        if isinstance(before, dict) and before != now:
            name = next(key for key in {**before, **now} if before.get(key) != now.get(key))
            before, now = before.get(name), now.get(name)
        if before != now:
            raise InputError(
                f"{folder} was run with {name} {before!r}, now it is {now!r}; "
                "resume with the same, or start over with --overwrite"
            )


def fit_run(
    folder: Path,
    graph: Graph,
    run: Run,
    *,
    save_every: float = 60.0,
    progress: Callable[[int, float], None] | None = None,
    stop: Callable[[], bool] | None = None,
    observe: Observer | None = None,
    observe_every: int = 0,
) -> Run:
    """Train, embed and write a run; continues from the folder's checkpoint when there is one."""
    device = torch.device(run.device)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    write_run(folder, run)
    with explained_memory():
        started = time.perf_counter()
        method = create(run.method, graph.num_features, seed=run.seed, settings=run.settings).to(device)
        prepared = method.prepare(graph, device)
        ready = time.perf_counter()
        history = train(
            method,
            prepared,
            seed=run.seed,
            start=load_checkpoint(folder),
            save=lambda checkpoint: save_checkpoint(folder, checkpoint),
            save_every=save_every,
            progress=progress,
            stop=stop,
            observe=observe,
            observe_every=observe_every,
        )
        trained = time.perf_counter()
        embeddings = method.embed(prepared).cpu().numpy()
        embedded = time.perf_counter()
    if not np.isfinite(embeddings).all():
        raise InputError(
            "the embeddings are not finite; lower learning_rate or check the scale of the features"
        )
    save_method(folder, method, run)
    write_embeddings(folder, embeddings, graph.node_ids, run.embedding_format)
    run.status = "finished" if history.finished else "interrupted"
    run.steps, run.resumed_from = len(history.losses), history.resumed_from
    run.seconds = {"prepare": ready - started, "train": trained - ready, "embed": embedded - trained}
    run.peak_memory_mib = peak_memory_mib(device)
    run.history = {"loss": history.losses, "observations": history.observations}
    write_run(folder, run)
    if history.finished:
        drop_checkpoint(folder)
    return run


def peak_memory_mib(device: torch.device) -> float:
    """Peak memory so far: the allocator's on CUDA, the process's resident set elsewhere."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated() / 2**20
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


@contextmanager
def explained_memory() -> Iterator[None]:
    """Turn running out of memory into one line that says which setting to lower."""
    way_out = "lower hidden, pool_size or seeds, or set batch_norm_rows=pool"
    try:
        yield
    except (MemoryError, torch.OutOfMemoryError):
        raise InputError(f"out of memory; {way_out}") from None
    except RuntimeError as error:
        if "can't allocate memory" not in str(error) and "not enough memory" not in str(error):
            raise
        raise InputError(f"out of memory; {way_out}") from None


def describe_source(
    source: str, options: dict[str, Any], labels: Path | None, graph: Graph
) -> dict[str, Any]:
    """What a record says of a graph: where it came from, how it was read, what it is."""
    return {
        "source": source,
        "options": options,
        "labels": str(labels) if labels else None,
        "digest": graph.digest,
        "num_nodes": graph.num_nodes,
        "num_edges": graph.num_edges,
        "num_features": graph.num_features,
        "directed": graph.directed,
    }
