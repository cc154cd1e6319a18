"""SELENE: ego networks discriminated by two channels, attributes and structure (Zhong et al., TMLR 2022)."""

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from spgcl.engine.encoders import Encoder
from spgcl.engine.tensors import GraphTensors, SparseMatrix, divided_by_row_sums
from spgcl.errors import InputError
from spgcl.graph import Graph
from spgcl.graph.checks import Features
from spgcl.methods.method import Method, Prepared
from spgcl.methods.parts.augment import mask_features, random_view
from spgcl.methods.parts.pools import sample_nodes
from spgcl.methods.parts.schedules import cosine_schedule
from spgcl.methods.parts.walks import arrivals
from spgcl.methods.ranges import Count, Fraction, Positive, Range, SizesMemory, Width

# Keeps the gradient of a column that is the same for all nodes finite.
SMALLEST_VARIANCE = 1e-12


def decorrelation_loss(first: Tensor, second: Tensor) -> Tensor:
    """The Barlow Twins objective: a column agrees with itself across two views, and with no other column.

    With the correlation c_ij of column i of one view and column j of the other, the sum of (1 - c_ii)^2 and,
    weighted by 1 / width, of c_ij^2 for i != j.

    Args:
        first: Embeddings of one view, shape (nodes, width).
        second: Embeddings of the other view, same shape.
    """
    correlations = _standardised(first).T @ _standardised(second) / len(first)
    diagonal = correlations.diagonal()
    others = correlations.square().sum() - diagonal.square().sum()
    return (1 - diagonal).square().sum() + others / len(diagonal)


def _standardised(columns: Tensor) -> Tensor:
    centred = columns - columns.mean(dim=0)
    return centred * (centred.square().mean(dim=0) + SMALLEST_VARIANCE).rsqrt()


def walk_encodings(graph: Graph, length: int) -> NDArray[np.float32]:
    """log(1 + expected visits) to every node after 0 ... `length` steps of walks, one from every node."""
    visits = list(arrivals(graph.adjacency.astype(np.float64), length))
    return np.log1p(np.stack(visits, axis=1)).astype(np.float32)


@dataclass(eq=False, kw_only=True)
class PreparedSELENE(Prepared):
    """The graph twice: with its attributes, and as the structure channel sees it.

    Attributes:
        structure: The same edges with encodings of the structure as features.
    """

    structure: GraphTensors


class SELENE(Method[PreparedSELENE]):
    """Ego networks are discriminated by their attributes and, in a second channel, by their structure.

    Args:
        hidden: Width of the hidden layers of both channels.
        projection_width: Width in which the views of a channel are compared.
        attribute_share: Weight of the attribute channel in the embedding; the structure channel has the rest.
        structure_inputs: What the structure channel reads: encodings by walks, or the attributes too.
        walk_length: Steps of the longest walk in the encodings.
        drop_edges: Fraction of edges removed in a view of the structure channel (p_e).
        mask_features: Fraction of columns masked in a view of either channel (p_x).
        seeds: Ego networks drawn at every step.
        warm_up: Fraction of the steps in which the learning rate rises, before it falls along a cosine.
        learning_rate: Of AdamW, at its peak.
    """

    def __init__(
        self,
        num_features: int,
        *,
        hidden: Width = 256,
        projection_width: Width = 16,
        normalise_features: bool = False,
        attribute_share: Annotated[float, Range(most=1)] = 0.2,
        structure_inputs: Literal["walks", "walks_and_attributes"] = "walks_and_attributes",
        walk_length: Annotated[int, SizesMemory.STEP] = 3,
        drop_edges: Fraction = 0.3,
        mask_features: Fraction = 0.2,
        seeds: Annotated[int, Range(least=2), SizesMemory.STEP] = 512,
        warm_up: Fraction = 0.1,
        steps: Count = 500,
        learning_rate: Positive = 1e-3,
        weight_decay: float = 1e-5,
    ) -> None:
        super().__init__(steps, learning_rate, weight_decay, normalise_features)
        self.attributes_too = structure_inputs == "walks_and_attributes"
        structure_width = walk_length + 1 + (num_features if self.attributes_too else 0)
        self.attribute_encoder = Encoder(
            num_features, kind="mlp", layers=1, hidden=hidden, activation="relu", batch_norm="affine"
        )
        self.attribute_head = nn.Linear(hidden, projection_width)
        self.decoder = nn.Sequential(
            nn.Linear(projection_width, hidden),
            nn.BatchNorm1d(hidden),
            nn.ReLU(),
            nn.Linear(hidden, num_features),
        )
        self.structure_encoder = Encoder(
            structure_width, hidden=hidden, activation="relu", batch_norm="affine"
        )
        self.structure_head = nn.Sequential(
            nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, projection_width)
        )
        self.attribute_share, self.walk_length = attribute_share, walk_length
        self.edge_rate, self.column_rate, self.seeds, self.warm_up = drop_edges, mask_features, seeds, warm_up

    def prepare(self, graph: Graph, device: torch.device, supervision: Any = None) -> PreparedSELENE:
        """Encode the structure by walks, and normalise the adjacency and, if asked, the features."""
        if graph.num_nodes < 2:
            raise InputError("SELENE needs a graph of at least two nodes; this one has one")
        if self.normalise_features:
            graph = graph.with_features(divided_by_row_sums(graph.features))
        encodings: Features = walk_encodings(graph, self.walk_length)
        if self.attributes_too:
            encodings = _joined(encodings, graph.features)
        structure = GraphTensors.of(graph.with_features(encodings), device)
        attributes = replace(GraphTensors.of(graph, device), adjacency=structure.adjacency)
        return PreparedSELENE(attributes, structure=structure)

    def loss(self, prepared: PreparedSELENE, step: int, generator: torch.Generator) -> Tensor:
        """Reconstruction of the attributes and decorrelation in both channels, over a sample of nodes."""
        chosen = sample_nodes(prepared.graph.num_nodes, self.seeds, generator).sort().values
        attributes = _rows(prepared.graph, chosen)
        structures = [
            random_view(prepared.structure, self.edge_rate, self.column_rate, generator) for _ in range(2)
        ]
        views = [self.structure_head(self.structure_encoder(view, chosen, None)) for view in structures]
        masked = [mask_features(attributes, self.column_rate, generator) for _ in range(2)]
        own = [self.attribute_head(self.attribute_encoder(view, None, None)) for view in masked]
        clean = self.attribute_head(self.attribute_encoder(attributes, None, None))
        rows = attributes.features
        originals = rows.dense() if isinstance(rows, SparseMatrix) else rows
        reconstruction = mse_loss(self.decoder(clean), originals)
        return reconstruction + decorrelation_loss(*own) + decorrelation_loss(*views)

    def learning_rate_at(self, step: int) -> float:
        """A rise over the first steps, then half a cosine down to zero."""
        return self.learning_rate * cosine_schedule(step, self.steps, self.warm_up * self.steps)

    @torch.no_grad()
    def embed(self, prepared: PreparedSELENE) -> Tensor:
        """Both channels before their heads, weighted and side by side, attributes first."""
        attributes = self.attribute_encoder.embed(prepared.graph)
        structure = self.structure_encoder.embed(prepared.structure)
        weight = self.attribute_share
        return torch.cat([weight * attributes, (1 - weight) * structure], dim=1)


def _joined(encodings: NDArray[np.float32], features: Features) -> Features:
    if sparse.issparse(features):
        return sparse.hstack([sparse.csr_array(encodings), features], format="csr")
    return np.hstack([encodings, features])


def _rows(graph: GraphTensors, chosen: Tensor) -> GraphTensors:
    """The features of some nodes; without edges, as the attribute channel uses none."""
    features = graph.features
    return replace(
        graph, features=features.select(chosen) if isinstance(features, SparseMatrix) else features[chosen]
    )
