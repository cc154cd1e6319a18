"""One training as all benchmarks do it: a data set, a method with its settings, a seed, a device."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from spgcl import Dataset
from spgcl.methods import Supervision, create, find
from spgcl.stepping import arithmetic
from spgcl.training import train


def embeddings_of(
    dataset: Dataset, method_name: str, settings: dict[str, Any], seed: int, device: torch.device
) -> NDArray[np.float32]:
    """Train once; embeddings of all nodes, or the class scores of a supervised method."""
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
    prepared = method.prepare(graph, device, supervision)
    with arithmetic(device):
        train(method, prepared, seed=seed)
    embeddings: NDArray[np.float32] = method.embed(prepared).cpu().numpy()
    return embeddings
