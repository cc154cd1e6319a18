"""`benchmarks/scores.py`, as it is run."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "scores.py"


@pytest.mark.parametrize("tenths", [False, True])
def test_a_training_is_scored_on_the_graphs_own_splits_or_on_random_tenths(tenths, tmp_path):
    given = {"steps": "2", "hidden": "8", "widening": "2"}
    results = tmp_path / "results.jsonl"
    words = ["--device", "cpu", "--results", results, "--seeds", "1", "grace:csbm-homophilic"]
    words += [word for name, value in given.items() for word in ("--set", f"{name}={value}")]
    words += ["--tenths"] if tenths else []
    subprocess.run([sys.executable, SCRIPT, *words], check=True, capture_output=True, text=True)
    (line,) = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]

    assert line.get("splits") == ("seeded 10/10/80" if tenths else None)
    assert line["given"] == given
    assert line["workers"] == 1 and "grace:csbm-homophilic" in line["command"]
    assert set(line["scores"]) == {"paper", "tuned"}
    assert all(0 < scores["test"] <= 100 for scores in line["scores"].values())
