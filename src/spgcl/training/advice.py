"""Notes on a training: before it starts, and on what came out."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from spgcl.engine.device import is_accelerator
from spgcl.errors import InputError
from spgcl.graph import Graph
from spgcl.methods.method import Method
from spgcl.methods.parameters import parameters

# Multiply-adds from which a step counts as long: ten seconds on four cores, which do about 5e10 per second.
LONG_STEP = 5e11


def sameness(embeddings: NDArray[np.float32]) -> str | None:
    """A note if all nodes have the same embedding."""
    some, first = embeddings[:: max(1, len(embeddings) // 100)], embeddings[:1]
    # Most embeddings differ within a sample: only then are all rows compared.
    if len(embeddings) < 2 or (some != first).any() or (embeddings != first).any():
        return None
    what = "the same embedding" if first.any() else "an embedding of zeros"
    return f"all nodes have {what}: features and edges do not tell them apart, or training diverged"


def one_column(graph: Graph, settings: Mapping[str, Any]) -> str | None:
    """A note if rows of a single feature are divided by their sums."""
    if graph.num_features != 1 or not settings.get("normalise_features"):
        return None
    return (
        "there is one feature column, and normalise_features=true reduces it to its sign; "
        "set normalise_features=false to keep it"
    )


def sized_defaults(method: type[Method], graph: Graph, settings: Mapping[str, Any]) -> str | None:
    """A note if settings are the defaults for a graph of this size instead of the usual ones."""
    sized = method.sized_defaults(graph.num_nodes, graph.num_edges)
    if not sized or not sized.items() <= settings.items():
        return None
    pairs = ", ".join(f"{name}={value}" for name, value in sized.items())
    return (
        f"on a graph of {graph.num_nodes:,} nodes and {graph.num_edges:,} edges the defaults are {pairs}: "
        "a step costs the same on a graph of any size; settings that you name are kept"
    )


def slow_steps(method: Method, graph: Graph, device: torch.device) -> str | None:
    """A note if every step goes over so many pairs of nodes that it takes long.

    On an accelerator such a step is quick, or memory ends first.
    """
    is_long = method.products_per_pair * graph.num_nodes**2 >= LONG_STEP
    if not is_long or not method.steps or is_accelerator(device):
        return None
    fewer = f"set {method.fewer_pairs}, or " if method.fewer_pairs else ""
    return (
        f"each of {method.steps:,} steps goes over all pairs of {graph.num_nodes:,} nodes and takes long; "
        f"{fewer}choose a method that samples pairs"
    )


def require_finite(embeddings: NDArray[np.float32], method: Method) -> None:
    """Refuse embeddings with infinities or NaN."""
    if not np.isfinite(embeddings).all():
        raise InputError(f"the embeddings are not finite; {remedies(method)}")


def remedies(method: Method) -> str:
    """What may keep numbers finite: the method's settings to lower, the features or the weights to check."""
    if method.steps:
        causes = [f"learning_rate (now {method.learning_rate:g})"]
    else:
        causes = [name for name, found in parameters(type(method)).items() if found.type is float]
    ways = [f"lower {' or '.join(causes)}"] if causes else []
    if method.reads_features:
        ways.append("check the scale of the features")
    return " or ".join(ways) or "check the weights of the edges"
