"""A graph on disk in the form that encoders and pools read: only the rows they touch are loaded."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from spgcl.engine.patterns import Pattern
from spgcl.engine.tensors import GraphTensors, SparseMatrix
from spgcl.scale.arrays import DiskArray
from spgcl.scale.derived import Workers
from spgcl.scale.propagate import features_of, smoothed
from spgcl.scale.store import Store


@dataclass(frozen=True, eq=False, kw_only=True)
class MappedAdjacency(SparseMatrix):
    """S by its rows, computed from the edges on disk when they are asked for; products need it in memory.

    The pattern is that of A. A row of S has one entry more, the node itself, in order among the others.

    Attributes:
        diagonal: How many neighbours come before the node itself.
        scales: See `spgcl.graph.propagate.propagation_scales`.
        weights: Edge weights, or None.
        directed: Whether columns are not scaled.
    """

    diagonal: Tensor
    scales: Tensor
    weights: Tensor | None
    directed: bool

    @classmethod
    def of_store(cls, store: Store) -> "MappedAdjacency":
        """The propagation matrix of a store."""
        rows, columns, diagonal = (tensor_of(store.arrays[name]) for name in ("rows", "columns", "diagonal"))
        weights = tensor_of(store.arrays["weights"]) if "weights" in store.arrays else None
        return cls(
            Pattern(rows, columns, store.num_nodes),
            torch.empty(0),
            diagonal=diagonal,
            scales=torch.from_numpy(store.scales),
            weights=weights,
            directed=store.directed,
        )

    def counts_of(self, chosen: Tensor) -> Tensor:
        """Entries in each of the chosen rows."""
        return super().counts_of(chosen) + 1

    def entries(self, chosen: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Column and value of entries, given by their row and their position in it."""
        before = self.diagonal[chosen]
        own = positions == before
        # The node itself has no entry on disk: any other is read in its stead.
        entries = (self.rows[chosen] + positions - (positions > before).long()).clamp(
            max=len(self.columns) - 1
        )
        columns = torch.where(own, chosen, self.columns[entries])
        values = self.scales[chosen].expand_as(columns)
        if self.weights is not None:
            values = values * torch.where(own, 1.0, self.weights[entries])
        if not self.directed:
            values = values * self.scales[columns]
        return columns, values.float()

    def select(self, chosen: Tensor) -> SparseMatrix:
        """The chosen rows, in the order given; repeats are allowed."""
        counts = self.counts_of(chosen)
        pointers = torch.zeros(len(chosen) + 1, dtype=torch.int64)
        torch.cumsum(counts, 0, out=pointers[1:])
        owners = torch.repeat_interleave(counts)
        columns, values = self.entries(chosen[owners], torch.arange(len(owners)) - pointers[owners])
        return SparseMatrix(Pattern(pointers, columns, self.shape[1]), values)


def tensor_of(array: DiskArray) -> Tensor:
    """An array on disk as a tensor; indexing it reads the rows asked for."""
    return torch.from_numpy(array.writable)


def mapped_tensors(store: Store, workers: Workers, *, normalise_features: bool) -> GraphTensors:
    """A store as the input of encoders; one propagation of its features is computed now."""
    features = features_of(store, workers, normalised=normalise_features)
    adjacency = MappedAdjacency.of_store(store)
    made = GraphTensors(tensor_of(features), adjacency, weights=adjacency.weights)
    # What `GraphTensors` computes and keeps when it is first used.
    vars(made)["smoothed"] = tensor_of(smoothed(store, 1, workers, normalised=normalise_features))
    return made


def warm(store: Store, memory: int) -> None:
    """Read the arrays of a store ahead, if they fit, as random reads wait for a disk far longer."""
    if store.bytes > memory:
        return
    for array in store.arrays.values():
        rows = array.mapped
        for start in range(0, len(rows), 2**20):
            np.count_nonzero(rows[start : start + 2**20])
