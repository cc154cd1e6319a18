"""One JSON line a measurement, with the machine and the versions it was taken on."""

import datetime
import json
import os
import platform
from pathlib import Path
from typing import Any

import torch

from spgcl.runs.record import versions


def machine(device: torch.device) -> dict[str, Any]:
    """Where and when: the processor or accelerator, threads, versions, date."""
    host = processor()
    return {
        "device": device.type,
        "processor": torch.cuda.get_device_name() if device.type == "cuda" else host,
        "host": host,
        "cores": cores(),
        "threads": torch.get_num_threads(),
        "versions": versions(),
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
    }


def processor() -> str:
    """The CPU's model where the system tells it, else its architecture."""
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def cores() -> int:
    """CPU cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def append(path: Path, record: dict[str, Any]) -> None:
    """Add a line to a results file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")
