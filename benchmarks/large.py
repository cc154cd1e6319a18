"""SP-GCL's defaults on a graph of 200,000 nodes and 2 million edges: time and memory of whole commands.

One line per command, appended to results/large.jsonl: the defaults for that size, and two steps of the usual
ones.

    python benchmarks/large.py
"""

import tempfile
from pathlib import Path

import numpy as np
from record import RESULTS, command_line
from store import settings, spgcl, watched, write_power_law

from spgcl.engine.device import choose_device
from spgcl.experiments.results import append, machine

NUM_NODES, NUM_FEATURES = 200_000, 64
ALL_ROWS = {"batch_norm_rows": "all", "fan_out": 0}


def main() -> None:
    path = RESULTS / "large.jsonl"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_power_law(folder, NUM_NODES)
        features = np.random.default_rng(0).standard_normal((NUM_NODES, NUM_FEATURES), dtype=np.float32)
        np.save(folder / "features.npy", features)
        files = (folder / "edges.parquet", "--features", folder / "features.npy", "--method", "spgcl")
        for variant, given in (("sized", {}), ("defaults", {**ALL_ROWS, "steps": 2})):
            command = spgcl("fit", *files, "--threads", 1, "--out", folder / variant, *settings(given))
            found = watched(command)
            fitted = found.pop("output")
            line = {"variant": variant, "nodes": NUM_NODES, "given": given, "steps": fitted["steps"]}
            record = {**line, "phases": fitted["seconds"], **found, **machine(choose_device("cpu"))}
            append(path, {**record, "threads": 1, "command": command_line("large.py", path)})


if __name__ == "__main__":
    main()
