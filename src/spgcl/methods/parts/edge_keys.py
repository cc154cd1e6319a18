"""Edges as sorted numbers, by which pairs of nodes are looked up."""

from dataclasses import dataclass

import torch
from torch import Tensor

from spgcl.engine.tensors import GraphTensors, SparseMatrix
from spgcl.methods.method import Prepared


@dataclass(eq=False, kw_only=True)
class PreparedPairs(Prepared):
    """A graph in which pairs of nodes can be looked up.

    Attributes:
        keys: Sorted `row * num_nodes + column` of every entry of A + I.
    """

    keys: Tensor

    @classmethod
    def of(cls, graph: GraphTensors) -> "PreparedPairs":
        """A graph with the keys of its edges."""
        return cls(graph, keys=entry_keys(graph.adjacency))


def entry_keys(matrix: SparseMatrix) -> Tensor:
    """`row * num_columns + column` of every entry of a matrix, ascending."""
    return (matrix.row_of_entry.long() * matrix.num_columns + matrix.columns).sort().values


def is_entry(wanted: Tensor, keys: Tensor) -> Tensor:
    """Whether each wanted key is among the sorted `keys`."""
    positions = torch.searchsorted(keys, wanted).clamp_(max=len(keys) - 1)
    return keys[positions] == wanted
