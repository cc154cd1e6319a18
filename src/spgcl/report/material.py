"""What a page is made from: a run, its graph and its evaluation."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from spgcl.datasets.dataset import Splits
from spgcl.evaluation.neighbours import nearest_nodes
from spgcl.graph import Graph
from spgcl.report.columns import Column
from spgcl.runs.record import Run

MOST_NODES = 50_000
# The page lists ten; UMAP needs a few more.
NEAREST = 14


@dataclass(frozen=True, eq=False)
class Material:
    """A run with everything that its page shows.

    Attributes:
        vectors: Embeddings, in the graph's node order.
        labels: One class per node, or None.
        class_names: Names of the classes; classes without one are shown by number.
        splits: Of the labels, or None.
        evaluation: `eval.json`, or None if the run is not evaluated.
        columns: Further columns for colouring nodes.
        device: Device for similarities and scores.
    """

    folder: Path
    run: Run
    graph: Graph
    vectors: NDArray[np.float32]
    labels: NDArray[np.int64] | None = None
    class_names: tuple[str, ...] = ()
    splits: Splits | None = None
    metric: str = "accuracy"
    evaluation: dict[str, Any] | None = None
    columns: tuple[Column, ...] = ()
    device: str | torch.device = "cpu"

    @cached_property
    def shown(self) -> NDArray[np.int64]:
        """Indices of the nodes on the map: all, or above `MOST_NODES` a seeded sample."""
        count = self.graph.num_nodes
        if count <= MOST_NODES:
            return np.arange(count)
        return np.sort(np.random.default_rng(0).choice(count, MOST_NODES, replace=False))

    @property
    def sampled(self) -> bool:
        """Whether the map leaves nodes out."""
        return len(self.shown) < self.graph.num_nodes

    @cached_property
    def nearest(self) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """For each shown node, the most similar others, as positions in `shown`, and their similarities."""
        return nearest_nodes(self.vectors[self.shown], NEAREST, self.device)

    @property
    def names(self) -> list[str]:
        """One name per class."""
        count = 0 if self.labels is None else int(self.labels.max()) + 1
        return [*self.class_names, *map(str, range(len(self.class_names), count))]
