"""One JSON line a measurement, with the machine and the versions it was taken on."""

import datetime
import json
import platform
from pathlib import Path
from typing import Any

import torch

from spgcl.storage import versions


def machine(device: torch.device) -> dict[str, Any]:
    """Where and when: the processor or accelerator, threads, versions, date."""
    name = (
        torch.cuda.get_device_name() if device.type == "cuda" else platform.processor() or platform.machine()
    )
    return {
        "device": device.type,
        "processor": name,
        "threads": torch.get_num_threads(),
        "versions": versions(),
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
    }


def append(path: Path, record: dict[str, Any]) -> None:
    """Add a line to a results file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")
