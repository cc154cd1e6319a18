"""The promises of docs/reliability.md, tried many times: kills, full and failing disks, races, odd input."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


def lines(script: str, *arguments: object) -> list[dict]:
    """What a script of trials prints, one record per line, in a process that has nothing else to do."""
    command = [sys.executable, str(TESTS / script), *map(str, arguments)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    records = [json.loads(line) for line in done.stdout.splitlines()]
    print(done.stdout)
    return records


@pytest.mark.skipif(not hasattr(os, "fork"), reason="trials are forks")
def test_every_file_operation_is_a_crash_point():
    """At one in eight operations, with every fault."""
    records = lines("crash_points.py", "--every", 8)
    assert [failure for record in records for failure in record["failures"]] == []
    tried = sum(record["trials"] for record in records)
    print(f"{tried} crash points")
    assert tried >= 400 and min(record["operations"] for record in records) >= 5 and len(records) == 17


@pytest.mark.skipif(not hasattr(os, "fork"), reason="trials are forks")
def test_pairs_of_commands_on_one_run_leave_it_whole():
    records = lines("interleavings.py", "--rounds", 5)
    assert [failure for record in records for failure in record["failures"]] == []
    assert sum(record["trials"] for record in records) >= 100


@pytest.mark.parametrize(("part", "cases"), [("records_of_runs,tensors_of_runs", 370), ("others", 630)])
def test_whatever_is_given_is_used_or_refused_in_one_line(part, cases):
    """A thousand cases together."""
    records = lines("fuzzing.py", "--cases", 1000, "--only", part)
    assert sum(record["cases"] for record in records) >= cases
    for record in records:
        assert record["failures"] == []
        # Mutations that are all refused, or never, would try nothing.
        codes = record["outcomes"]
        assert not codes or {"0", "2"} <= codes.keys(), record
