"""`spgcl fit` and `spgcl eval` from end to end, after import, in a new process."""

import importlib
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

import torch

from spgcl.errors import InputError
from timing.isolated import run_isolated
from timing.memory import peak_mib

# What the two commands import on first use; the clock starts after it.
MODULES = (
    "spgcl.runs.fit",
    "spgcl.evaluation.linear_probe",
    "spgcl.evaluation.health",
    "spgcl.io.tables",
)


def measure_end_to_end(
    graph: str, settings: Mapping[str, Any], device: torch.device, *, threads: int, rounds: int
) -> dict[str, Any]:
    """Medians and all rounds of `fit_and_evaluate`; `total` is `fit` and `eval` together."""
    task = {"graph": graph, "settings": settings, "device": device.type, "threads": threads}
    found = [run_isolated("end-to-end", **task, asked=time.time()) for _ in range(rounds)]
    parts = {name: [one[name] for one in found] for name in found[0]}
    parts["total"] = [one["fit"] + one["eval"] for one in found]
    return {"seconds": {name: median(values) for name, values in parts.items()}, "rounds": parts}


def fit_and_evaluate(
    graph: str, settings: Mapping[str, Any], device: str, threads: int, asked: float
) -> dict[str, Any]:
    """Run both commands once; seconds to import, to initialise the device, and of each command.

    Args:
        graph: Name of a data set.
        settings: All hyper-parameters of SP-GCL.
        device: Where to compute.
        threads: CPU threads.
        asked: When the process was started, by the system's clock; importing is counted from there.
    """
    from spgcl.cli import run

    for module in MODULES:
        importlib.import_module(module)
    imported, waited = time.perf_counter(), time.time() - asked
    torch.zeros(1, device=device).sum().item()
    awake = time.perf_counter()
    options = ["--device", device, "--threads", str(threads)]
    given = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "run")
        _require_success(run(["fit", graph, "--method", "spgcl", "--out", out, *given, *options]), "fit")
        fitted = time.perf_counter()
        _require_success(run(["eval", out, "--only", "probe,knn,clustering", *options]), "eval")
        evaluated = time.perf_counter()
    return {
        "import": waited,
        "device": awake - imported,
        "fit": fitted - awake,
        "eval": evaluated - fitted,
        "peak_mib": peak_mib(torch.device(device)),
    }


def _require_success(code: int, command: str) -> None:
    if code:
        raise InputError(f"spgcl {command} ended with exit code {code}; run it alone to see why")
