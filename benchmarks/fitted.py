"""One training as all benchmarks do it: a data set, a method with its settings, a seed, a device."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from spgcl import Dataset
from spgcl.engine.device import arithmetic
from spgcl.methods import Supervision, create, find
from spgcl.methods.method import Method, Prepared
from spgcl.training.loop import train


def begun(
    dataset: Dataset, method_name: str, settings: dict[str, Any], seed: int, device: torch.device
) -> tuple[Method, Prepared]:
    """A fresh method on a device, and what it computes once for the graph."""
    graph = dataset.graph
    supervision = None
    if find(method_name).supervised:
        supervision = Supervision.of(dataset.labels, dataset.splits)
    method = create(
        method_name,
        graph.num_features,
        num_nodes=graph.num_nodes,
        task=supervision.task if supervision else None,
        seed=seed,
        settings=settings,
    ).to(device)
    return method, method.prepare(graph, device, supervision)


def finished(method: Method, prepared: Prepared, seed: int, precision: str = "auto") -> NDArray[np.float32]:
    """Train; embeddings of all nodes, or the class scores of a supervised method."""
    with arithmetic(prepared.graph.device, precision):
        train(method, prepared, seed=seed)
    embeddings: NDArray[np.float32] = method.embed(prepared).cpu().numpy()
    return embeddings


def embeddings_of(
    dataset: Dataset, method_name: str, settings: dict[str, Any], seed: int, device: torch.device
) -> NDArray[np.float32]:
    """Both at once."""
    return finished(*begun(dataset, method_name, settings, seed, device), seed)
