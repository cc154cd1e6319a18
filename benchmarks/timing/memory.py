"""Peak memory of training and embedding, in a new process."""

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from spgcl.datasets import Dataset
from spgcl.engine.device import peak_memory_mib
from spgcl.methods import find
from spgcl.methods.memory import explained_memory
from spgcl.training.fitting import fit
from timing import reference
from timing.graphs import load_graph
from timing.isolated import OutOfMemoryError, run_isolated

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
SEED = 0


def measure_memory(
    graph: str, subject: str, settings: Mapping[str, Any], device: torch.device, threads: int
) -> dict[str, Any]:
    """Peak memory of `fit_and_embed` in a fresh process; `peak_mib` is None if it did not fit."""
    try:
        return run_isolated(
            "memory", graph=graph, subject=subject, settings=settings, device=str(device), threads=threads
        )
    except OutOfMemoryError:
        return {"peak_mib": None, "before_mib": None}


def fit_and_embed(
    graph: str, subject: str, settings: Mapping[str, Any], device: str, threads: int
) -> dict[str, Any]:
    """Train and embed; the peak since the graph was loaded, and what the process held before.

    Args:
        graph: Name of a graph.
        subject: "reference", or a method's name.
        settings: Hyper-parameters.
        device: Where to compute.
        threads: CPU threads.
    """
    torch.set_num_threads(threads)
    where = torch.device(device)
    dataset = load_graph(graph)
    before = reset_peak(where)
    if subject == "reference":
        with explained_memory(find("spgcl"), settings):
            _fit_and_embed_reference(dataset, settings, where)
    else:
        fit(subject, dataset.graph, settings=settings, seed=SEED, device=where, precision="float32").embed()
    # The system updates one of the two figures a little later than the other.
    return {"peak_mib": max(before, peak_mib(where)), "before_mib": before}


def _fit_and_embed_reference(dataset: Dataset, settings: Mapping[str, Any], device: torch.device) -> None:
    model = reference.Reference(dataset.graph.num_features, settings).to(device)
    data = reference.prepare(reference.load(dataset), settings, device)
    reference.train(model, data, settings["steps"], SEED)
    reference.embed(model, data)


def peak_mib(device: torch.device) -> float:
    """Peak of this process: the allocator's on CUDA, the resident set elsewhere."""
    if device.type == "cuda" or not _STATUS.exists():
        return peak_memory_mib(device)
    # Not getrusage: a child's figure there starts at what its parent had resident.
    return _status_mib("VmHWM")


def reset_peak(device: torch.device) -> float:
    """Reset the peak, if the system can, and return what is held now."""
    if device.type == "cuda":
        torch.cuda.init()  # type: ignore[no-untyped-call]
        torch.cuda.reset_peak_memory_stats(device)
        return torch.cuda.memory_allocated(device) / 2**20
    if not _STATUS.exists():
        return peak_memory_mib(device)
    # Without permission, the peak is that of loading or of training, whichever is larger.
    with contextlib.suppress(OSError):
        _CLEAR.write_text("5", encoding="ascii")
    return _status_mib("VmRSS")


def _status_mib(name: str) -> float:
    lines = _STATUS.read_text(encoding="ascii", errors="replace").splitlines()
    kilobytes = next(line.split()[1] for line in lines if line.startswith(f"{name}:"))
    return int(kilobytes) / 1024
