"""Time of the random walks of DeepWalk and node2vec."""

import time
from collections.abc import Iterator
from statistics import median
from typing import Any

import torch

from spgcl.methods.parts.walks import WalkGraph, random_walks
from timing.graphs import load_graph

# p and q: without bias, then towards near nodes, then towards far ones.
BIASES = ((1.0, 1.0), (0.25, 4.0), (4.0, 0.25))


def measure_walks(
    name: str, device: torch.device, *, walks: int, length: int, rounds: int
) -> Iterator[dict[str, Any]]:
    """For every bias, seconds for `walks` walks from every node, without the time to prepare the graph."""
    graph = WalkGraph.of(load_graph(name).graph, device)
    starts = torch.arange(graph.num_nodes, device=device).repeat(walks)
    for p, q in BIASES:
        generator = torch.Generator(device).manual_seed(0)
        seconds = []
        for _ in range(rounds):
            started = time.perf_counter()
            walked = random_walks(graph, starts, length, generator, p=p, q=q)
            # Reading a number waits until an accelerator has finished.
            int(walked[-1, -1])
            seconds.append(round(time.perf_counter() - started, 3))
        settings = {"walks": walks, "length": length, "p": p, "q": q}
        yield {"dataset": name, **settings, "seconds": median(seconds), "rounds": seconds}
