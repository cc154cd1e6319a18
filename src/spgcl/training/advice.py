"""What people should know of a training: said before it starts, or of what came out."""

import math
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from spgcl.errors import InputError
from spgcl.graph import Graph
from spgcl.methods.method import Method
from spgcl.methods.parameters import parameters

# Seconds of products over pairs of nodes that are announced; with fewer products, no rate is measured.
LONG_STEP = 10.0
FEW_PRODUCTS = 1e11


def sameness(embeddings: NDArray[np.float32]) -> str | None:
    """What to say where all nodes have one embedding."""
    some, first = embeddings[:: max(1, len(embeddings) // 100)], embeddings[:1]
    # Most differ in the first few: only then is the rest looked at.
    if len(embeddings) < 2 or (some != first).any() or (embeddings != first).any():
        return None
    what = "the same embedding" if first.any() else "an embedding of zeros"
    return f"all nodes have {what}: features and edges do not tell them apart, or training went astray"


def one_column(graph: Graph, settings: Mapping[str, Any]) -> str | None:
    """What to say where rows are divided by their sums and have one number each."""
    if graph.num_features != 1 or not settings.get("normalise_features"):
        return None
    return (
        "the features have one column, of which dividing rows by their sums leaves the sign alone; "
        "set normalise_features=false to keep it"
    )


def slow_steps(method: Method, graph: Graph, device: torch.device) -> str | None:
    """What to say before training where a step goes over so many pairs of nodes that it takes long.

    Of a processor only: products are most of its work there, and an accelerator's memory ends first.
    """
    products = method.products_per_pair * graph.num_nodes**2
    if device.type != "cpu" or products < FEW_PRODUCTS or not method.steps:
        return None
    seconds = products / _product_rate()
    if seconds < LONG_STEP:
        return None
    fewer = f"set {method.fewer_pairs}, or " if method.fewer_pairs else ""
    return (
        f"a step goes over all pairs of {graph.num_nodes:,} nodes, which takes at least {_spoken(seconds)} "
        f"here, and {method.steps} steps {_spoken(method.steps * seconds)}; {fewer}take spgcl, dgi or bgrl, "
        "which go over none"
    )


def _product_rate() -> float:
    """Products of two numbers a second, in a product of matrices on the processor."""
    matrix = torch.ones(1024, 1024)
    best = math.inf
    for _ in range(3):
        started = time.perf_counter()
        torch.mm(matrix, matrix)
        best = min(best, time.perf_counter() - started)
    return 1024**3 / best


def _spoken(seconds: float) -> str:
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} seconds"


def require_finite(embeddings: NDArray[np.float32], method: Method) -> None:
    """Refuse embeddings that nothing can be done with."""
    if not np.isfinite(embeddings).all():
        raise InputError(f"the embeddings are not finite; {remedies(method)}")


def remedies(method: Method) -> str:
    """What may make numbers smaller, of what the method has."""
    if method.steps:
        causes = [f"learning_rate (now {method.learning_rate:g})"]
    else:
        causes = [name for name, found in parameters(type(method)).items() if found.type is float]
    ways = [f"lower {' or '.join(causes)}"] if causes else []
    if method.reads_features:
        ways.append("check the scale of the features")
    return " or ".join(ways) or "check the weights of the edges"
