"""Edges as sorted numbers, by which pairs of nodes are looked up."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from spgcl.engine.tensors import SparseMatrix
from spgcl.graph import Graph
from spgcl.methods.method import Method, Prepared


@dataclass(eq=False, kw_only=True)
class PreparedPairs(Prepared):
    """A graph in which pairs of nodes can be looked up.

    Attributes:
        keys: Sorted `row * num_nodes + column` of every entry of A + I.
    """

    keys: Tensor


def prepare_pairs(
    method: Method[PreparedPairs],
    graph: Graph,
    device: torch.device,
    supervision: Any = None,  # noqa: ARG001
) -> PreparedPairs:
    """Also number the edges: the `prepare` of methods that look up pairs."""
    tensors = method.on_device(graph, device)
    return PreparedPairs(tensors, keys=entry_keys(tensors.adjacency))


def entry_keys(matrix: SparseMatrix) -> Tensor:
    """`row * num_columns + column` of every entry of a matrix, ascending."""
    return (matrix.row_of_entry.long() * matrix.shape[1] + matrix.columns).sort().values


def is_entry(wanted: Tensor, keys: Tensor) -> Tensor:
    """Whether each wanted key is among the sorted `keys`."""
    positions = torch.searchsorted(keys, wanted).clamp_(max=len(keys) - 1)
    return keys[positions] == wanted
