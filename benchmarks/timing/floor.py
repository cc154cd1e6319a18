"""How fast a step could be on this machine: the counted work over measured rates."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict
from statistics import median
from typing import Any

import torch

from spgcl.engine.device import arithmetic
from spgcl.graph import Graph
from timing.counting import Extent, count, is_counted, measure_extent
from timing.stopwatch import Stopwatch

# Enough rows for a processor's full rate; more only take longer.
_MOST_ROWS = {"cpu": 8192}
_COPIED_BYTES = {"cpu": 2**28, "cuda": 2**31}
# Too many rows for a cache to keep from one reading to the next, read into a buffer that stays in it.
_RANDOM_ROWS = 2**20
_ROWS_AT_ONCE = {"cpu": 2**12, "cuda": 2**20}


def precisions(device: torch.device) -> tuple[str, ...]:
    """The formats in which a device multiplies float32 matrices."""
    return ("float32", "tf32") if device.type == "cuda" else ("float32",)


def floor(
    graph: Graph, settings: Mapping[str, Any], device: torch.device, *, step: float, seconds: float = 0.2
) -> dict[str, Any] | None:
    """The work of a step and the least time it takes here; None for settings that are not counted.

    The floor is the larger of operations over the measured rate and bytes over the measured bandwidth, plus,
    on CUDA, the time to replay an empty graph.

    Args:
        graph: The graph that is trained on.
        settings: Hyper-parameters of SP-GCL.
        device: Where the rates are measured.
        step: Seconds that a step takes, for its ratio to the floor.
        seconds: How long each rate is measured.
    """
    if not is_counted(settings):
        return None
    extent = measure_extent(graph, settings)
    cost = count(extent, graph.num_features, settings)
    size = product_size(extent, graph.num_features, settings["hidden"])
    rates = {name: product_rate(device, size, name, seconds) for name in precisions(device)}
    bandwidth = copy_bandwidth(device, seconds)
    replay = replay_seconds(device)
    least = {
        name: least_seconds(cost.operations, cost.bytes, rate, bandwidth, replay)
        for name, rate in rates.items()
    }
    return {
        **asdict(cost),
        "extent": asdict(extent),
        "product": list(size),
        "operations_per_second": rates,
        "bytes_per_second": bandwidth,
        "replay_seconds": replay,
        "seconds": least,
        "ratios": {name: step / shortest for name, shortest in least.items()},
    }


def least_seconds(operations: int, num_bytes: int, rate: float, bandwidth: float, replay: float) -> float:
    """The floor of a step."""
    return max(operations / rate, num_bytes / bandwidth) + replay


def product_size(extent: Extent, num_features: int, width: int) -> tuple[int, int, int]:
    """Rows, inner width and columns of the step's largest dense product."""
    first = (0, 0, 0) if extent.sparse_features else (extent.first_rows, num_features, width)
    second = (extent.second_rows, width, width)
    return max(first, second, key=lambda size: size[0] * size[1] * size[2])


def product_rate(device: torch.device, size: tuple[int, int, int], precision: str, seconds: float) -> float:
    """Operations per second of a dense product."""
    rows, inner, columns = size
    rows = min(rows, _MOST_ROWS.get(device.type, rows))
    left, right = torch.rand(rows, inner, device=device), torch.rand(inner, columns, device=device)
    product = torch.empty(rows, columns, device=device)
    with arithmetic(device, precision):
        once = _seconds_of(lambda: torch.mm(left, right, out=product), device, seconds)
    return 2 * rows * inner * columns / once


def copy_bandwidth(device: torch.device, seconds: float) -> float:
    """Bytes per second, read and written, of a copy too large for any cache."""
    source = torch.ones(_COPIED_BYTES.get(device.type, 2**28) // 4, device=device)
    target = torch.empty_like(source)
    once = _seconds_of(lambda: target.copy_(source), device, seconds)
    return 8 * len(source) / once


def random_row_seconds(num_rows: int, width: int, device: torch.device, seconds: float = 1.0) -> float:
    """Seconds to read one row of a table, in an order that no cache can predict.

    A product with an adjacency reads its dense factor this way, one row per edge.
    """
    table = torch.ones(num_rows, width, device=device)
    generator = torch.Generator(device).manual_seed(0)
    chosen = torch.randint(num_rows, (_RANDOM_ROWS,), device=device, generator=generator)
    blocks = torch.split(chosen, _ROWS_AT_ONCE.get(device.type, _RANDOM_ROWS))
    target = torch.empty(len(blocks[0]), width, device=device)

    def read() -> None:
        for block in blocks:
            torch.index_select(table, 0, block, out=target)

    return _seconds_of(read, device, seconds) / _RANDOM_ROWS


def replay_seconds(device: torch.device) -> float:
    """Seconds to replay an empty CUDA graph; 0 on other devices."""
    if device.type != "cuda":
        return 0.0
    graph = torch.cuda.CUDAGraph()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The CUDA Graph is empty")
        with torch.cuda.graph(graph):
            pass
    return _seconds_of(graph.replay, device, 0.1)


def _seconds_of(work: Callable[[], object], device: torch.device, seconds: float) -> float:
    """Seconds per call: the median over five batches that together take about `seconds`."""
    watch = Stopwatch(device)
    once = min(watch.time(work) for _ in range(3))
    calls = max(1, int(seconds / 5 / max(once, 1e-7)))

    def batch() -> None:
        for _ in range(calls):
            work()

    return median(watch.time(batch) for _ in range(5)) / calls
