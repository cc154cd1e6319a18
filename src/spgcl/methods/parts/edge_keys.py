"""Edges as sorted numbers, by which pairs of nodes are looked up."""

from dataclasses import dataclass

import torch
from torch import Tensor

from spgcl.engine.tensors import GraphTensors, SparseMatrix
from spgcl.graph import Graph
from spgcl.methods.method import Prepared


@dataclass(eq=False, kw_only=True)
class PreparedPairs(Prepared):
    """A graph with the pairs that its decoder has to tell from all others.

    Attributes:
        keys: Sorted `row * num_nodes + column` of every entry of A + I.
    """

    keys: Tensor

    @classmethod
    def of(cls, graph: Graph, device: torch.device, *, normalise_features: bool) -> "PreparedPairs":
        """Normalise the adjacency and, if asked, the features, and number the entries."""
        tensors = GraphTensors.of(graph, device, normalise_features=normalise_features)
        return cls(tensors, keys=entry_keys(tensors.adjacency))


def entry_keys(matrix: SparseMatrix) -> Tensor:
    """One ascending number an entry of a matrix, by which entries are looked up."""
    return (matrix.row_of_entry.long() * matrix.num_columns + matrix.columns).sort().values


def is_entry(wanted: Tensor, keys: Tensor) -> Tensor:
    """Whether each wanted number is among the sorted `keys`."""
    places = torch.searchsorted(keys, wanted).clamp_(max=len(keys) - 1)
    return keys[places] == wanted
