"""SP-GCL's defaults and auto on a large graph, from results/large.jsonl."""

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


def auto_text(records: Sequence[dict[str, Any]]) -> str:
    """Time and memory of auto."""
    found = [one for one in records if one["variant"] == "auto"]
    if not found:
        return NO_RESULTS
    memory = found[-1]["mib"]["resident"] / 1024
    return (
        f"`spgcl fit` on {found[-1]['nodes']:,} nodes, 2 million edges and 64 features takes "
        f"{found[-1]['cpu_seconds']:.0f} seconds of one processor and {memory:.1f} GiB "
        "(`python benchmarks/large.py auto`)."
    )
