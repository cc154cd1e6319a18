"""The way of fit, eval and similar on a system without what only Unix has.

Libraries are imported before the system is changed; modules of this package meet the changed one.
"""

import os
import subprocess
import sys

SCRIPT = """
import json, os, signal, sys, types

import pyarrow.parquet, rich.console, safetensors.torch, scipy.sparse.csgraph, torch, typer

calls = []
sys.modules["msvcrt"] = types.SimpleNamespace(LK_NBLCK=2, locking=lambda *given: calls.append(given))
for name in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules[name] = None
for name in ("sysconf", "geteuid", "getuid", "fork", "uname", "O_DIRECTORY"):
    delattr(os, name)
sys.platform = "win32"

import spgcl
from spgcl.cli import run
from spgcl.engine.device import machine_memory

assert machine_memory() == sys.maxsize
trained = spgcl.Embedder("spgcl", steps=1, hidden=4)
assert trained.fit_transform(spgcl.load("csbm-homophilic")).shape == (1500, 4)

for words in (
    ["fit", "--out", "run", "--threads", "1"],
    ["eval", "run", "--protocol", "tuned", "--only", "probe,knn"],
    ["similar", "run", "3"],
    ["embed", "run", "csbm-heterophilic", "--out", "vectors.parquet"],
):
    assert run(words) == 0, words
assert calls
assert json.load(open("run/run.json"))["peak_memory_mib"] == 0
"""


def test_commands_run_without_what_only_unix_has(tmp_path):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
