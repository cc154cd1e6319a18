"""Try the promises of docs/reliability.md at full size and append the counts to results/hardening.jsonl.

Every file operation of every command is a crash point; odd input by the thousand; commands at the same time.

python benchmarks/hardening.py
python benchmarks/hardening.py --cases 100000 --seed 7
python benchmarks/hardening.py --script crash_points.py --only ingest
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import torch
from record import RESULTS, command_line

from spgcl.experiments.results import append, machine

SCRIPTS = Path(__file__).parents[1] / "tests"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=10_000, help="of odd input")
    parser.add_argument("--seed", type=int, default=0, help="of odd input")
    parser.add_argument("--every", type=int, default=1, help="one in so many file operations")
    parser.add_argument("--rounds", type=int, default=20, help="interleavings of each pair of commands")
    parser.add_argument("--script", choices=["fuzzing.py", "interleavings.py", "crash_points.py"])
    parser.add_argument("--only", default="", help="what to try: part of a name, or names of odd input")
    parser.add_argument("--results", type=Path, default=RESULTS / "hardening.jsonl")
    asked = parser.parse_args()
    failed = 0
    for script, arguments in (
        ("fuzzing.py", ["--cases", asked.cases, "--seed", asked.seed]),
        ("interleavings.py", ["--rounds", asked.rounds]),
        ("crash_points.py", ["--every", asked.every]),
    ):
        if asked.script not in (None, script):
            continue
        command = [sys.executable, str(SCRIPTS / script), *map(str, arguments), "--only", asked.only]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout or ():
                record = json.loads(line)
                print(*record["failures"], sep="\n", end="")
                failed += len(record["failures"])
                summary = {**record, "failures": len(record["failures"])}
                made = command_line("hardening.py", asked.results)
                append(
                    asked.results,
                    {"script": script, **summary, "command": made, **machine(torch.device("cpu"))},
                )
        failed += process.returncode != 0
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
