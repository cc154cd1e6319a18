"""The scripts that score methods and time walks, as they are run."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def lines_of(tmp_path, name, *arguments):
    results = tmp_path / "results.jsonl"
    command = [sys.executable, BENCHMARKS / name, "--device", "cpu", "--results", results, *arguments]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("tenths", [False, True])
def test_a_training_is_scored_on_the_graphs_own_splits_or_on_random_tenths(tenths, tmp_path):
    chosen = ["--tenths"] if tenths else []
    settings = ["--set", "steps=2", "--set", "hidden=8", "--set", "widening=2"]
    (line,) = lines_of(
        tmp_path,
        "scores.py",
        *chosen,
        "--method",
        "grace",
        "--seeds",
        "1",
        *settings,
        "csbm-homophilic",
    )

    assert line.get("splits") == ("seeded 10/10/80" if tenths else None)
    assert line["given"] == {"steps": "2", "hidden": "8", "widening": "2"}
    assert set(line["scores"]) == {"paper", "tuned"}
    assert all(0 < scores["test"] <= 100 for scores in line["scores"].values())


def test_walks_are_timed_with_and_without_a_bias(tmp_path):
    arguments = ("--walks", "1", "--length", "4", "--rounds", "3", "csbm-homophilic")
    lines = lines_of(tmp_path, "walks.py", *arguments)

    assert [(line["p"], line["q"]) for line in lines] == [(1, 1), (0.25, 4), (4, 0.25)]
    for line in lines:
        assert len(line["rounds"]) == 3 and min(line["rounds"]) <= line["seconds"] <= max(line["rounds"])
        assert (line["walks"], line["length"], line["device"]) == (1, 4, "cpu")


def test_the_latest_time_of_a_walk_is_shown(script):
    line = {"dataset": "cora", "walks": 10, "length": 80, "p": 0.25, "q": 4.0, "processor": "a processor"}
    table = script("score_tables").walks_table([{**line, "seconds": 9.0}, {**line, "seconds": 1.5}])

    assert "| cora | a processor | 10 of 80 nodes | 0.25 | 4 | 1.50 |" in table and "9.00" not in table
