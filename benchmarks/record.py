"""One JSON line per measurement, with the machine and the versions it was taken on."""

import json
from pathlib import Path
from typing import Any

from timing.record import append, machine

__all__ = ["append", "machine", "read_lines"]


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The records of a results file; none when it is not there yet."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
