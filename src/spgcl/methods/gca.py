"""GCA: graph contrastive learning with adaptive augmentation (Zhu et al., WWW 2021)."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from spgcl.engine.encoders import Activation, BatchNorm, Encoder
from spgcl.engine.tensors import GraphTensors
from spgcl.graph import Graph
from spgcl.graph.propagate import inverse
from spgcl.methods.method import Method, Prepared
from spgcl.methods.parts.augment import random_view
from spgcl.methods.parts.node_contrast import CONTRAST_PRODUCTS, node_contrast, projection_head
from spgcl.methods.ranges import Count, Factor, Fraction, Positive, Width

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


class GCA(Method[PreparedGCA]):
    """GRACE with views that spare what is important: edges at central nodes, features of central nodes.

    Args:
        centrality: What makes a node important (phi_c).
        cut_off: Largest probability of removal (p_tau).
        widening: How many times as wide the encoder's first layer is.
        projection: Width inside the projection head (g).
        drop_edges_first: Mean fraction of edges removed in the first view (p_e), before the cut-off.
        drop_edges_second: The same in the second view.
        mask_features_first: Mean fraction of feature columns set to zero in the first view (p_f).
        mask_features_second: The same in the second view.
        temperature: What similarities are divided by (tau).
        learning_rate: Of Adam.
        weight_decay: Of Adam, as a gradient of the squared weights.
    """

    static = True
    decoupled_decay = False

    def __init__(
        self,
        num_features: int,
        *,
        hidden: Width = 256,
        widening: Factor = 1,
        projection: Width = 32,
        activation: Activation = "prelu",
        batch_norm: BatchNorm = "plain",
        normalise_features: bool = True,
        centrality: Centrality = "degree",
        cut_off: Fraction = 0.7,
        drop_edges_first: Fraction = 0.2,
        drop_edges_second: Fraction = 0.2,
        mask_features_first: Fraction = 0.5,
        mask_features_second: Fraction = 0.5,
        temperature: Positive = 0.4,
        steps: Count = 200,
        learning_rate: Positive = 1e-3,
        weight_decay: float = 1e-5,
    ) -> None:
        super().__init__(steps, learning_rate, weight_decay, normalise_features)
        self.encoder = Encoder(
            num_features, hidden=hidden, activation=activation, batch_norm=batch_norm, widening=widening
        )
        self.head = projection_head(hidden, projection, nn.ELU())
        self.centrality, self.cut_off = CENTRALITIES[centrality], cut_off
        self.rates = ((drop_edges_first, mask_features_first), (drop_edges_second, mask_features_second))
        self.temperature = temperature
        self.products_per_pair = CONTRAST_PRODUCTS * hidden

    def prepare(self, graph: Graph, device: torch.device, supervision: Any = None) -> PreparedGCA:
        """Rank edges and feature columns by the centrality of their nodes."""
        tensors, scores = self.on_device(graph, device), self.centrality(graph)
        edges = edge_factors(tensors, torch.from_numpy(scores)).float().to(device)
        columns = column_factors(graph, scores).float().to(device)
        return PreparedGCA(tensors, edges=edges, columns=columns)

    def loss(self, prepared: PreparedGCA, step: int, generator: torch.Generator) -> Tensor:
        """Algorithm 1 of the paper: two adaptive views, one encoder and head, the objective."""
        views = (self._view(prepared, *rates, generator) for rates in self.rates)
        first, second = (self.head(self.encoder(view, None, generator)) for view in views)
        return node_contrast(first, second, temperature=self.temperature)

    def _view(
        self, prepared: PreparedGCA, edge_rate: float, column_rate: float, generator: torch.Generator
    ) -> GraphTensors:
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
