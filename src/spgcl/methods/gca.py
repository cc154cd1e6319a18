"""GCA: graph contrastive learning with adaptive augmentation (Zhu et al., WWW 2021)."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spgcl.engine.tensors import GraphTensors
from spgcl.graph import Graph
from spgcl.graph.propagate import inverse
from spgcl.methods.method import Prepared
from spgcl.methods.parts.augment import random_view
from spgcl.methods.parts.two_views import TwoViews
from spgcl.methods.ranges import Fraction

Centrality = Literal["degree", "eigenvector", "pagerank"]
Numbers = NDArray[np.float64]

# Probability of following an edge instead of jumping to a random node.
DAMPING = 0.85
ROUNDS = 1000
TOLERANCE = 1e-10


@dataclass(eq=False, kw_only=True)
class PreparedGCA(Prepared):
    """A graph with the removal rates of its edges and feature columns, relative to their mean.

    Attributes:
        edges: One number per entry of the adjacency; those of self loops are not used.
        columns: One number per feature column.
    """

    edges: Tensor
    columns: Tensor


class GCA(TwoViews):
    """GRACE with views that spare what is important: edges at central nodes, features of central nodes.

    Args:
        centrality: What makes a node important (phi_c).
        cut_off: Largest probability of removal (p_tau).
        drop_edges_first: Mean fraction of edges removed in the first view (p_e), before the cut-off.
        mask_features_first: Mean fraction of feature columns set to zero in the first view (p_f).
    """

    def __init__(
        self, num_features: int, *, centrality: Centrality = "degree", cut_off: Fraction = 0.7, **shared: Any
    ) -> None:
        super().__init__(num_features, **shared)
        self.centrality, self.cut_off = CENTRALITIES[centrality], cut_off

    def prepare(self, graph: Graph, device: torch.device, supervision: Any = None) -> PreparedGCA:
        """Rank edges and feature columns by the centrality of their nodes."""
        tensors, scores = self.on_device(graph, device), self.centrality(graph)
        edges = edge_factors(tensors, torch.from_numpy(scores)).float().to(device)
        columns = column_factors(graph, scores).float().to(device)
        return PreparedGCA(tensors, edges=edges, columns=columns)

    def view(
        self, prepared: PreparedGCA, edge_rate: float, column_rate: float, generator: torch.Generator
    ) -> GraphTensors:
        """A view from which edges and feature columns are removed the rather, the less central they are."""
        edge_rates = (prepared.edges * edge_rate).clamp(max=self.cut_off)
        column_rates = (prepared.columns * column_rate).clamp(max=self.cut_off)
        return random_view(prepared.graph, edge_rates, column_rates, generator)


def degree_centrality(graph: Graph) -> Numbers:
    """Summed weights of the edges that point to a node."""
    return np.asarray(graph.adjacency.sum(axis=0, dtype=np.float64))


def eigenvector_centrality(graph: Graph) -> Numbers:
    """Leading eigenvector of the transposed adjacency, of length 1."""
    pointing = graph.adjacency.T.astype(np.float64).tocsr()
    # Adding a multiple of the identity keeps the eigenvectors and makes the iteration converge on bipartite
    # graphs, too, whose eigenvalues come in pairs of opposite sign.
    shift = float(pointing.data.mean())
    vector = np.full(graph.num_nodes, graph.num_nodes**-0.5)
    for _ in range(ROUNDS):
        following = pointing @ vector + shift * vector
        following /= np.linalg.norm(following)
        moved = float(np.abs(following - vector).max())
        vector = following
        if moved < TOLERANCE:
            break
    return vector


def pagerank_centrality(graph: Graph) -> Numbers:
    """PageRank, scaled to mean 1; from a node without out-edges the walk jumps to a random node."""
    adjacency = graph.adjacency.astype(np.float64)
    sums = np.asarray(adjacency.sum(axis=1))
    scale = inverse(sums)
    pointing = adjacency.T.tocsr()
    rank = np.ones(graph.num_nodes)
    for _ in range(ROUNDS):
        lost = rank[sums == 0].sum() / graph.num_nodes
        following = 1 - DAMPING + DAMPING * (pointing @ (rank * scale) + lost)
        moved = float(np.abs(following - rank).max())
        rank = following
        if moved < TOLERANCE:
            break
    return rank


CENTRALITIES = {
    "degree": degree_centrality,
    "eigenvector": eigenvector_centrality,
    "pagerank": pagerank_centrality,
}


def edge_factors(graph: GraphTensors, centrality: Tensor) -> Tensor:
    """Removal rate of every entry of the adjacency, relative to the mean over edges; 0 at self loops.

    An undirected edge has the mean centrality of its ends, a directed one the centrality of its target.
    """
    # Ranked in double precision on the processor, as not every device has it.
    sources, targets = graph.adjacency.row_of_entry.long().cpu(), graph.adjacency.columns.long().cpu()
    central = centrality[targets]
    if graph.adjacency.symmetric:
        central = (central + centrality[sources]) / 2
    edges = sources != targets
    factors = torch.zeros_like(central)
    factors[edges] = removal_factors(central[edges])
    return factors


def column_factors(graph: Graph, centrality: Numbers) -> Tensor:
    """Masking rate of every feature column, relative to their mean; low if it is large in central nodes."""
    central = np.asarray(abs(graph.features).T @ centrality, dtype=np.float64)
    return removal_factors(torch.from_numpy(central))


def removal_factors(central: Tensor) -> Tensor:
    """(s_max - s) / (s_max - mean s) with s = log(1 + centrality); 1 where all are equally central."""
    scores = central.log1p()
    top = scores.max()
    spread = top - scores.mean()
    if spread <= 1e-12 * top:
        return torch.ones_like(scores)
    return (top - scores) / spread
