"""The table of SP-GCL's defaults on a large graph, from results/large.jsonl."""

from collections.abc import Sequence
from typing import Any

from markdown import NO_RESULTS, table

NAMES = {"sized": "for its size", "defaults": "usual"}


def large_table(records: Sequence[dict[str, Any]]) -> str:
    """Seconds per step, and seconds and memory of the whole command, by defaults."""
    latest = {one["variant"]: one for one in records}
    rows = [
        [
            name,
            f"{latest[variant]['steps']}",
            f"{latest[variant]['phases']['train'] / latest[variant]['steps']:.2f}",
            f"{latest[variant]['cpu_seconds']:.0f}",
            f"{latest[variant]['mib']['resident'] / 1024:.1f}",
        ]
        for variant, name in NAMES.items()
        if variant in latest
    ]
    columns = ["defaults", "steps", "seconds per step", "processor seconds of the command", "peak GiB"]
    return table(columns, rows) if rows else NO_RESULTS
