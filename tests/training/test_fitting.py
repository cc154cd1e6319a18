"""Fitting on systems that lack what only Unix has."""

import subprocess
import sys

# As on Windows: neither module can be imported, and `os` does not tell the machine's memory.
FIT = """
import os, sys
sys.modules |= dict.fromkeys(("resource", "fcntl", "pwd", "termios"))
del os.sysconf
import spgcl
from spgcl.cli import run
from spgcl.engine.device import machine_memory
assert machine_memory() == sys.maxsize
assert spgcl.Embedder(steps=1, hidden=4).fit_transform(spgcl.load("csbm-homophilic")).shape == (1500, 4)
sys.exit(run(["fit", "csbm-homophilic", "--out", sys.argv[1], "--steps", "1", "--set", "hidden=4", "--json"]))
"""


def test_fitting_needs_nothing_that_only_unix_has(tmp_path):
    command = [sys.executable, "-c", FIT, str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert '"peak_memory_mib": 0' in done.stdout
    assert (tmp_path / "run" / "embeddings.parquet").exists()
