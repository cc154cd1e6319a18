"""What a page is made from: a run, its graph, and what evaluation found."""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from spgcl.evaluation.neighbours import nearest_nodes
from spgcl.graph import Graph
from spgcl.report.columns import Column
from spgcl.runs.record import Run

if TYPE_CHECKING:
    from spgcl.datasets.dataset import Splits

MOST_NODES = 50_000
# Ten to list, and a few more that UMAP wants to know.
NEAREST = 14
_SAMPLE_SEED = 0


@dataclass(frozen=True, eq=False)
class Material:
    """A run with everything that its page tells of.

    Attributes:
        vectors: Embeddings, in the graph's node order.
        labels: One class a node, or None.
        class_names: Names of the classes; numbers where they have none.
        splits: Of the labels, or None.
        evaluation: `eval.json`, or None where there was nothing to evaluate with.
        columns: Further columns that nodes can be coloured by.
        device: Where similarities are computed.
        most_nodes: A page with more nodes shows a sample of so many.
    """

    folder: Path
    run: Run
    graph: Graph
    vectors: NDArray[np.float32]
    labels: NDArray[np.int64] | None = None
    class_names: tuple[str, ...] = ()
    splits: "Splits | None" = None
    metric: str = "accuracy"
    evaluation: dict[str, Any] | None = None
    columns: tuple[Column, ...] = ()
    device: str | torch.device = "cpu"
    most_nodes: int = field(default=MOST_NODES)

    @cached_property
    def shown(self) -> NDArray[np.int64]:
        """The nodes of the map: all, or above `most_nodes` a seeded sample, in order."""
        count = self.graph.num_nodes
        if count <= self.most_nodes:
            return np.arange(count)
        return np.sort(np.random.default_rng(_SAMPLE_SEED).choice(count, self.most_nodes, replace=False))

    @property
    def sampled(self) -> bool:
        """Whether the map leaves nodes out."""
        return len(self.shown) < self.graph.num_nodes

    @cached_property
    def nearest(self) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The most similar nodes among those shown, as places among them, and their similarities."""
        return nearest_nodes(self.vectors[self.shown], NEAREST, self.device)

    @property
    def names(self) -> list[str]:
        """One name a class."""
        count = 0 if self.labels is None else int(self.labels.max()) + 1
        return [*self.class_names, *map(str, range(len(self.class_names), count))]
