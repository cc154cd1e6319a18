"""The transformed graph of Definition 1: every node joined to the nodes with the most similar outputs."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spgcl.errors import InputError
from spgcl.evaluation.checks import checked_classes
from spgcl.evaluation.neighbours import nearest_nodes
from spgcl.graph import Graph
from spgcl.theory.layer import Layer, random_layer

# The more columns, the less the selected pairs depend on the weights drawn.
WIDTH = 256


@dataclass(frozen=True, eq=False)
class Transformed:
    """The selected pairs, and the undirected graph that they are the edges of.

    Attributes:
        nodes: Which nodes of the original graph these are, ascending.
        selected: The selected nodes of every node, as rows of `nodes`, shape (nodes, positives).
        layer: The layer whose outputs were compared, over all nodes of the original graph.
    """

    nodes: NDArray[np.int64]
    selected: NDArray[np.int64]
    layer: Layer

    @property
    def num_nodes(self) -> int:
        """Number of nodes that were compared."""
        return len(self.nodes)

    @cached_property
    def pairs(self) -> sparse.csr_array:
        """Selected pairs as a 0/1 matrix with equal row sums; who selects is not always selected."""
        return pair_matrix(self.selected)

    @cached_property
    def adjacency(self) -> sparse.csr_array:
        """The transformed graph's adjacency: an edge where at least one end selects the other."""
        return undirected(self.pairs)


def transform(
    graph: Graph, *, positives: int, seed: int = 0, among: NDArray[np.bool_] | None = None
) -> Transformed:
    """Select the most cosine-similar other nodes of every node by the outputs of a random layer.

    Nodes whose outputs are all 0 have no cosine similarity and are left out.

    Args:
        graph: The original graph.
        positives: How many nodes each node selects, K_pos in the paper.
        seed: Decides the weights of the layer.
        among: The nodes that select and are selected; all if None.
    """
    layer = random_layer(graph, WIDTH, seed)
    comparable = layer.outputs.any(axis=1)
    nodes = np.flatnonzero(comparable if among is None else comparable & among)
    if not 1 <= positives < len(nodes):
        raise InputError(
            f"positives is {positives}; with {len(nodes)} nodes to compare it must be 1 to {len(nodes) - 1}"
        )
    return Transformed(nodes, nearest_nodes(layer.outputs[nodes], positives)[0], layer)


def transform_labelled(
    graph: Graph, labels: Any, *, positives: int, seed: int = 0
) -> tuple[Transformed, NDArray[np.int64], int]:
    """The transformed graph among the nodes with a class, their classes, and how many classes there are."""
    values, num_classes = checked_classes(labels, graph.num_nodes)
    transformed = transform(graph, positives=positives, seed=seed, among=values >= 0)
    return transformed, values[transformed.nodes], num_classes


def pair_matrix(selected: NDArray[np.int64]) -> sparse.csr_array:
    """A row of selected nodes per node as a square 0/1 matrix."""
    count, positives = selected.shape
    starts = np.arange(0, count * positives + 1, positives)
    return sparse.csr_array((np.ones(count * positives), selected.ravel(), starts), shape=(count, count))


def undirected(pairs: sparse.csr_array) -> sparse.csr_array:
    """The 0/1 matrix of the pairs in either direction."""
    return sparse.csr_array((pairs + pairs.T) > 0, dtype=np.float64)


def symmetric_normalised(adjacency: sparse.csr_array) -> sparse.csr_array:
    """D^-1/2 A D^-1/2 of a graph in which every node has an edge."""
    scale = sparse.diags_array(1 / np.sqrt(adjacency.sum(axis=1)))
    return sparse.csr_array(scale @ adjacency @ scale)


def disagreement(adjacency: sparse.csr_array, labels: NDArray[np.int64]) -> float:
    """Fraction of the edges that join two classes: phi, normalised by the number of edges."""
    ends = adjacency.tocoo()
    return float(np.mean(labels[ends.coords[0]] != labels[ends.coords[1]]))
