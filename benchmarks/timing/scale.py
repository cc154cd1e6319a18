"""How time grows with the graph at a fixed pool: synthetic graphs of one average degree, a process each."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from spgcl.methods import resolved_settings
from timing.floor import random_row_seconds
from timing.graphs import synthetic
from timing.isolated import run_isolated
from timing.memory import peak_mib
from timing.phases import Subject, warm_up
from timing.stopwatch import Stopwatch

SIZES = (100_000, 1_000_000, 10_000_000)
AVERAGE_DEGREE = 10.0
NUM_FEATURES = 16
# Narrow, so that ten million embeddings fit into a small machine; batch norm must not use all rows.
NARROW: Mapping[str, Any] = {"hidden": 32, "hops": 2, "fan_out": 10, "batch_norm_rows": "pool"}


def growth_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """The defaults of SP-GCL, narrowed; then those given."""
    return resolved_settings("spgcl", None, "", {**NARROW, **given})


def measure_growth(
    sizes: Sequence[int],
    settings: Mapping[str, Any],
    device: torch.device,
    *,
    threads: int,
    rounds: int = 5,
    progress: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """Medians at every size, and how much more the largest takes than the smallest."""
    measured = []
    for num_nodes in sizes:
        if progress:
            progress(num_nodes)
        task = {"num_nodes": num_nodes, "settings": settings, "device": str(device)}
        measured.append(run_isolated("scale", **task, threads=threads, rounds=rounds))
    return {
        "average_degree": AVERAGE_DEGREE,
        "num_features": NUM_FEATURES,
        "settings": dict(settings),
        "rounds": rounds,
        "sizes": measured,
        "growth": growth(measured),
    }


def growth(measured: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Largest size over smallest: nodes plus edges, seconds per phase and per row read at random."""
    first, last = measured[0], measured[-1]
    size = (last["num_nodes"] + last["num_edges"]) / (first["num_nodes"] + first["num_edges"])
    phases = {
        phase: last["seconds"][phase] / first["seconds"][phase]
        for phase in ("prepare", "step", "embed")
        if first["seconds"][phase] > 0
    }
    row = last["random_row_seconds"] / first["random_row_seconds"]
    return {"nodes_and_edges": size, **phases, "random_row": row}


def time_size(
    num_nodes: int, settings: Mapping[str, Any], device: str, threads: int, rounds: int
) -> dict[str, Any]:
    """Time prepare, step and embed on a graph of one size, and reading rows of a table of that size."""
    torch.set_num_threads(threads)
    where = torch.device(device)
    subject = Subject("spgcl", settings, ("prepare", "start", "step", "embed"))
    warm_up(subject, where)
    watch = Stopwatch(where)
    with watch.phase("generate"):
        dataset = synthetic(num_nodes, AVERAGE_DEGREE, NUM_FEATURES, f"csbm-{num_nodes}")
    for _ in range(rounds):
        subject.measure(lambda: dataset, where, probe_epochs=0)
    peak = peak_mib(where)
    return {
        "num_nodes": dataset.graph.num_nodes,
        "num_edges": dataset.graph.num_edges,
        "timed_steps": subject.timer.count,
        "generate_seconds": watch.seconds["generate"],
        "seconds": subject.medians(),
        "rounds": subject.rounds,
        "random_row_seconds": random_row_seconds(num_nodes, settings["hidden"], where),
        "peak_mib": peak,
    }
