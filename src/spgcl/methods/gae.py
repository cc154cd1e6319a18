"""GAE: graph auto-encoder (Kipf and Welling, 2016)."""

from dataclasses import dataclass
from typing import Annotated, Any

import torch
from torch import Tensor
from torch.nn.functional import softplus

from spgcl.engine.all_pairs import SOFTPLUS_PRODUCTS, summed_softplus
from spgcl.engine.convolutions import Block, Convolution
from spgcl.engine.encoders import BatchNorm, Encoder
from spgcl.engine.pair_products import entry_products, pair_products
from spgcl.engine.tensors import GraphTensors, SparseMatrix
from spgcl.graph import Graph
from spgcl.methods.method import Method, Prepared
from spgcl.methods.parts.encoders import gcn_encoder
from spgcl.methods.ranges import Count, Fraction, Positive, SizesMemory, Width


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


def sampled_reconstruction(
    vectors: Tensor, entries: SparseMatrix, keys: Tensor, ratio: int, generator: torch.Generator
) -> Tensor:
    """The re-weighted likelihood of A + I, with the pairs that are no edges drawn at random.

    Half the mean cross-entropy over the entries of A + I and half that over the drawn pairs; what is drawn
    and turns out to be an entry is left out.

    Args:
        vectors: One row a node (Z).
        entries: A + I; its values are not looked at.
        keys: The entries, from `entry_keys`.
        ratio: Pairs drawn an entry.
        generator: Decides which.
    """
    num_nodes = len(vectors)
    drawn = torch.randint(num_nodes**2, (ratio * len(keys),), generator=generator, device=keys.device)
    absent = ~is_entry(drawn, keys)
    scores = pair_products(vectors, vectors, drawn // num_nodes, drawn % num_nodes)
    error = (absent * softplus(scores)).sum() / absent.sum().clamp(min=1)
    return (softplus(-entry_products(vectors, entries)).mean() + error) / 2


def full_reconstruction(vectors: Tensor, entries: SparseMatrix, block_nodes: int | None = None) -> Tensor:
    """The re-weighted likelihood of A + I over all pairs of nodes, in blocks.

    Half the mean cross-entropy over the entries of A + I and half that over all other pairs.

    Args:
        vectors: One row a node (Z).
        entries: A + I; its values are not looked at.
        block_nodes: Rows and columns of a block of scores; by the device when None.
    """
    scores = entry_products(vectors, entries)
    total = summed_softplus(vectors, block_nodes)
    num_absent = max(1, len(vectors) ** 2 - len(scores))
    return (softplus(-scores).mean() + (total - softplus(scores).sum()) / num_absent) / 2


class GAE(Method):
    """Two convolutions whose outputs' inner products tell edges from other pairs of nodes.

    Args:
        num_features: Width of the graph's features.
        hidden: Width of the first convolution.
        embedding_width: Width of the second convolution and of the embedding.
        dropout: Share of activations dropped after the first convolution.
        batch_norm: After the first convolution: none, without learnable scale and shift, or with them.
        normalise_features: Divide feature rows by their L1 norm.
        negative_ratio: Pairs drawn as non-edges at every step, an edge; 0 takes all pairs, as the paper does.
        steps: Updates of the weights.
        learning_rate: Of AdamW.
        weight_decay: Of AdamW.
    """

    static = True
    fewer_pairs = "negative_ratio=1"

    def __init__(
        self,
        num_features: int,
        *,
        hidden: Width = 512,
        embedding_width: Width = 256,
        dropout: Fraction = 0.0,
        batch_norm: BatchNorm = "none",
        normalise_features: bool = True,
        negative_ratio: Annotated[int, SizesMemory.IF_RAISED] = 1,
        steps: Count = 200,
        learning_rate: Positive = 1e-3,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__()
        self.first = first_layer(num_features, hidden, dropout, batch_norm)
        self.second = Convolution(hidden, embedding_width)
        self.normalise_features, self.negative_ratio = normalise_features, negative_ratio
        self.products_a_pair = 0.0 if negative_ratio else SOFTPLUS_PRODUCTS * embedding_width
        self.steps, self.learning_rate, self.weight_decay = steps, learning_rate, weight_decay

    def prepare(self, graph: Graph, device: torch.device, supervision: Any = None) -> PreparedPairs:
        """Normalise the adjacency and, if asked, the features; number the edges."""
        return PreparedPairs.of(graph, device, normalise_features=self.normalise_features)

    def loss(self, prepared: Prepared, step: int, generator: torch.Generator) -> Tensor:
        """The reconstruction term of Eq. 3, with Z of Eq. 4."""
        assert isinstance(prepared, PreparedPairs)
        graph = prepared.graph
        vectors = self.second(self.first(graph, None, generator), Block(graph.adjacency))
        return reconstruction(vectors, prepared, self.negative_ratio, generator)

    @torch.no_grad()
    def embed(self, prepared: Prepared) -> Tensor:
        """Z, the output of the second convolution."""
        graph = prepared.graph
        embeddings: Tensor = self.second(self.first.embed(graph), Block(graph.adjacency))
        return embeddings


def first_layer(num_features: int, hidden: int, dropout: float, batch_norm: BatchNorm) -> Encoder:
    """The convolution with a ReLU that GAE and VGAE begin with."""
    return gcn_encoder(
        num_features, hidden, layers=1, activation="relu", dropout=dropout, batch_norm=batch_norm
    )


def reconstruction(
    vectors: Tensor, prepared: PreparedPairs, ratio: int, generator: torch.Generator
) -> Tensor:
    """The reconstruction term over all pairs when `ratio` is 0, else over the entries and drawn pairs."""
    entries = prepared.graph.adjacency
    if ratio:
        return sampled_reconstruction(vectors, entries, prepared.keys, ratio, generator)
    return full_reconstruction(vectors, entries)
