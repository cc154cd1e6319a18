"""SP-GCL's defaults, and auto, on 200,000 nodes and 2 million edges: time and memory of whole commands.

One line per command, appended to results/large.jsonl: SP-GCL's defaults for that size, two steps of its usual
ones, and auto.

    python benchmarks/large.py
    python benchmarks/large.py auto
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from record import RESULTS, command_line
from store import settings, spgcl, watched, write_power_law

from spgcl.engine.device import choose_device
from spgcl.experiments.results import append, machine

NUM_NODES, NUM_FEATURES = 200_000, 64
# Method and values set by hand.
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "sized": ("spgcl", {}),
    "defaults": ("spgcl", {"batch_norm_rows": "all", "fan_out": 0, "steps": 2}),
    "auto": ("auto", {}),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("variants", nargs="*", metavar="VARIANT", help=f"of {', '.join(VARIANTS)}")
    variants = parser.parse_args().variants or list(VARIANTS)
    path = RESULTS / "large.jsonl"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_power_law(folder, NUM_NODES)
        features = np.random.default_rng(0).standard_normal((NUM_NODES, NUM_FEATURES), dtype=np.float32)
        np.save(folder / "features.npy", features)
        files = (folder / "edges.parquet", "--features", folder / "features.npy", "--threads", 1)
        for variant in variants:
            method, given = VARIANTS[variant]
            command = spgcl("fit", *files, "--method", method, "--out", folder / variant, *settings(given))
            found = watched(command)
            fitted = found.pop("output")
            line = {"variant": variant, "nodes": NUM_NODES, "given": given, "steps": fitted["steps"]}
            record = {**line, "phases": fitted["seconds"], **found, **machine(choose_device("cpu"))}
            append(path, {**record, "threads": 1, "command": command_line("large.py", path)})


if __name__ == "__main__":
    main()
