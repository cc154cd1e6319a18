"""Where the signal of the benchmark graphs is, one line per graph, appended to results/reliability.jsonl.

python benchmarks/reliability.py cora chameleon
"""

import argparse
from pathlib import Path

import torch
from record import RESULTS, append, command_line, machine

import spgcl
from spgcl.evaluation import split_half


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("datasets", nargs="+", metavar="GRAPH")
    parser.add_argument("--results", type=Path, default=RESULTS / "reliability.jsonl")
    arguments = parser.parse_args()
    for name in arguments.datasets:
        found = split_half(spgcl.load(name))
        more = {
            **machine(torch.device("cpu")),
            "command": command_line("reliability.py", arguments.results),
        }
        append(arguments.results, {"dataset": name, **found, **more})
        print(name, *found["verdict"], sep="\n  ", flush=True)


if __name__ == "__main__":
    main()
