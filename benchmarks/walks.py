"""Time random walks of DeepWalk and node2vec, one line per bias, appended to results/walks.jsonl.

python benchmarks/walks.py amazon-computers
"""

import argparse
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import torch

import spgcl
from spgcl.engine.device import choose_device
from spgcl.methods.parts.walks import WalkGraph, random_walks

sys.path.insert(0, str(Path(__file__).parent))
from record import append, machine

RESULTS = Path(__file__).parents[1] / "results" / "walks.jsonl"
# p and q: without bias, then towards what is near and what is far.
BIASES = ((1.0, 1.0), (0.25, 4.0), (4.0, 0.25))


def timed(
    name: str, bias: tuple[float, float], *, walks: int, length: int, rounds: int, device_name: str
) -> dict[str, Any]:
    """Seconds to walk `walks` times from every node, the graph being laid out before."""
    device = choose_device(device_name)
    graph = WalkGraph.of(spgcl.load(name).graph, device)
    starts = torch.arange(graph.num_nodes, device=device).repeat(walks)
    generator = torch.Generator(device).manual_seed(0)
    seconds = []
    for _ in range(rounds):
        started = time.perf_counter()
        walked = random_walks(graph, starts, length, generator, p=bias[0], q=bias[1])
        # An accelerator is done only when a number of it is here.
        int(walked[-1, -1])
        seconds.append(round(time.perf_counter() - started, 3))
    return {
        "dataset": name,
        "walks": walks,
        "length": length,
        "p": bias[0],
        "q": bias[1],
        "seconds": median(seconds),
        "rounds": seconds,
        **machine(device),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("datasets", nargs="+", metavar="GRAPH")
    parser.add_argument("--walks", type=int, default=10, help="from every node")
    parser.add_argument("--length", type=int, default=80, help="nodes of a walk")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    for name in arguments.datasets:
        for bias in BIASES:
            record = timed(
                name,
                bias,
                walks=arguments.walks,
                length=arguments.length,
                rounds=arguments.rounds,
                device_name=arguments.device,
            )
            append(arguments.results, record)
            print(f"{name}: p {bias[0]:g}, q {bias[1]:g}: {record['seconds']:.2f} s", flush=True)


if __name__ == "__main__":
    main()
