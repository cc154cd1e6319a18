"""One JSON line per measurement, with the machine and the versions it was taken on."""

import datetime
import json
import os
import platform
import sys
from pathlib import Path
from typing import Any

import torch

from spgcl.runs.record import versions

RESULTS = Path(__file__).parents[1] / "results"


def machine(device: torch.device) -> dict[str, Any]:
    """Where and when: the processor or accelerator, threads, versions, date."""
    host = processor()
    return {
        "device": device.type,
        "processor": torch.cuda.get_device_name() if device.type == "cuda" else host,
        "host": host,
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        "threads": torch.get_num_threads(),
        "versions": versions(),
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
    }


def processor() -> str:
    """The CPU's model if the system reports it, else its architecture."""
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def command_line(script: str, results: Path) -> str:
    """The command that is running, without its results file, which does not change a result."""
    words = [word for word in sys.argv[1:] if word not in ("--results", str(results))]
    return " ".join(["python", f"benchmarks/{script}", *words])


def append(path: Path, record: dict[str, Any]) -> None:
    """Add a line to a results file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The records of a results file but superseded ones; none if it does not exist."""
    return [line for line in read_all_lines(path) if "superseded" not in line]


def read_all_lines(path: Path) -> list[dict[str, Any]]:
    """The records of a results file, also those of methods that have changed since."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
