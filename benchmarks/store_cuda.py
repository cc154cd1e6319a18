"""A graph of papers100M's size on one accelerator: propagate two hops, train, embed; generated on the card.

Appends one line to results/store.jsonl. Smaller sizes run on CPU too.

python benchmarks/store_cuda.py
python benchmarks/store_cuda.py --device cpu --nodes 20000 --entries 300000
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from record import RESULTS, command_line
from torch import Tensor

from spgcl.engine.device import choose_device, forget_peak_memory, is_accelerator, peak_memory_mib
from spgcl.engine.patterns import Pattern
from spgcl.engine.tensors import GraphTensors, SparseMatrix
from spgcl.experiments.results import append, machine
from spgcl.methods import create
from spgcl.methods.method import Prepared
from spgcl.training.loop import train

# The sizes of ogbn-papers100M, its edges in both directions.
NODES, ENTRIES = 111_059_956, 1_615_685_872
# Rows of a product, and of a layer, at a time: what they need besides their result is small.
ROWS = 2**22
SETTINGS = {"batch_norm_rows": "pool", "fan_out": 10, "hops": 2, "seeds": 128, "normalise_features": False}


class Phases:
    """Seconds of what is done, waiting for the device."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self.seconds: dict[str, float] = {}

    def time(self, name: str, work: Callable[[], Any]) -> Any:
        """Do the work and note its seconds."""
        self._wait()
        started = time.perf_counter()
        result = work()
        self._wait()
        self.seconds[name] = time.perf_counter() - started
        return result

    def _wait(self) -> None:
        if is_accelerator(self._device):
            torch.accelerator.synchronize()


def power_law(num_nodes: int, num_entries: int, device: torch.device) -> SparseMatrix:
    """D^-1 (A + I) of a random directed graph: degrees fall like a power law, neighbours are uniform."""
    generator = torch.Generator(device).manual_seed(0)
    drawn = torch.rand(num_nodes, generator=generator, device=device).clamp_(min=1e-7).pow_(-0.5)
    # Sums are rounded, not degrees, so that all of them make the number asked for.
    ends = drawn.cumsum(0, dtype=torch.float64)
    ends.div_(ends[-1].clone()).mul_(num_entries - num_nodes).ceil_()
    pointers = torch.zeros(num_nodes + 1, dtype=torch.int32, device=device)
    pointers[1:] = ends + torch.arange(1, num_nodes + 1, device=device)
    counts = pointers.diff()
    total = int(pointers[-1])
    columns = torch.randint(num_nodes, (total,), dtype=torch.int32, generator=generator, device=device)
    columns[pointers[:-1].long()] = torch.arange(num_nodes, dtype=torch.int32, device=device)
    values = torch.empty(total, dtype=torch.float16, device=device)
    for start, stop in blocks(num_nodes):
        first, last = int(pointers[start]), int(pointers[stop])
        part = counts[start:stop]
        values[first:last] = (1 / part).half().repeat_interleave(part, output_size=last - first)
    return SparseMatrix(Pattern(pointers, columns, num_nodes), values)


def blocks(num_nodes: int) -> Iterator[tuple[int, int]]:
    """First and last row of every block."""
    return ((start, min(start + ROWS, num_nodes)) for start in range(0, num_nodes, ROWS))


@torch.no_grad()
def product(matrix: SparseMatrix, dense: Tensor) -> Tensor:
    """The product, block by block, in the number format of the dense factor."""
    result = torch.empty_like(dense)
    for start, stop in blocks(matrix.shape[0]):
        first, last = int(matrix.rows[start]), int(matrix.rows[stop])
        pattern = Pattern(matrix.rows[start : stop + 1] - first, matrix.columns[first:last], matrix.shape[1])
        result[start:stop] = SparseMatrix(pattern, matrix.values[first:last]) @ dense
    return result


def warm_up(matrix: SparseMatrix, dense: Tensor) -> None:
    """Let libraries load their kernels: a product of one row."""
    count = int(matrix.rows[1])
    row = Pattern(matrix.rows[:2], matrix.columns[:count], matrix.shape[1])
    SparseMatrix(row, matrix.values[:count]) @ dense


def layer(encoder: Any, index: int, inputs: Tensor) -> Tensor:
    """A layer of the encoder for all rows, in the place of its inputs, which are as wide."""
    for start, stop in blocks(len(inputs)):
        inputs[start:stop] = encoder.layer_output(index, inputs[start:stop].float())
    return inputs


def measure(arguments: argparse.Namespace, device: torch.device) -> dict[str, Any]:
    """Seconds per phase, peak memory, and bytes per second of a hop."""
    width, phases = arguments.features, Phases(device)
    forget_peak_memory(device)
    matrix = phases.time("edges", lambda: power_law(arguments.nodes, arguments.entries, device))
    draws = torch.Generator(device).manual_seed(1)
    shape = (arguments.nodes, width)
    features = phases.time(
        "features", lambda: torch.randn(shape, dtype=torch.float16, generator=draws, device=device)
    )
    warm_up(matrix, features)
    first = phases.time("hop 1", partial(product, matrix, features))
    del features
    phases.time("hop 2", partial(product, matrix, first))
    method = create(
        "spgcl",
        width,
        num_nodes=arguments.nodes,
        seed=0,
        settings={**SETTINGS, "hidden": width, "steps": arguments.steps},
    ).to(device)
    tensors = GraphTensors(first, matrix)
    # The first layer reads features propagated once.
    vars(tensors)["smoothed"] = first
    history = phases.time("train", lambda: train(method, Prepared(tensors), seed=0))
    method.eval()

    def embed() -> Tensor:
        return layer(method.encoder, 1, product(matrix, layer(method.encoder, 0, first)))

    vectors = phases.time("embed", embed)
    entries = len(matrix.columns)
    moved = entries * (4 + 2 + 2 * width) + arguments.nodes * (4 + 2 * width)
    counted = ("hop 1", "hop 2", "train", "embed")
    return {
        "kind": "accelerator",
        "nodes": arguments.nodes,
        "entries": entries,
        "features": width,
        "steps": arguments.steps,
        "seconds": {name: round(value, 4) for name, value in phases.seconds.items()},
        "total": round(sum(phases.seconds[name] for name in counted), 3),
        "peak_gb": round(peak_memory_mib(device) * 2**20 / 1e9, 2),
        "hop_gb_per_second": round(moved / phases.seconds["hop 2"] / 1e9, 1),
        "last_loss": history.losses[-1],
        "finite": bool(vectors[:: max(1, len(vectors) // 10_000)].isfinite().all()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="auto")
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--entries", type=int, default=ENTRIES)
    parser.add_argument("--features", type=int, default=128)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--results", type=Path, default=RESULTS / "store.jsonl")
    arguments = parser.parse_args()
    device = choose_device(arguments.device)
    record = measure(arguments, device)
    command = command_line("store_cuda.py", arguments.results)
    append(arguments.results, {**record, **machine(device), "command": command})
    print(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
