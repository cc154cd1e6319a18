"""Where the signal of the benchmark graphs is, one line per graph, appended to results/reliability.jsonl.

python benchmarks/reliability.py cora chameleon
"""

import torch
from record import RESULTS, command_line
from trainings import graphs_parser

import spgcl
from spgcl.evaluation import split_half
from spgcl.experiments.results import append, machine


def main() -> None:
    arguments = graphs_parser(__doc__, RESULTS / "reliability.jsonl").parse_args()
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
