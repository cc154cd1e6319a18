"""GAE: graph auto-encoder (Kipf and Welling, 2016)."""

from typing import Annotated, Any

import torch
from torch import Tensor

from spgcl.engine.all_pairs import SOFTPLUS_PRODUCTS
from spgcl.engine.convolutions import Block, Convolution
from spgcl.engine.encoders import BatchNorm
from spgcl.graph import Graph
from spgcl.methods.method import Method, Prepared
from spgcl.methods.parts.edge_keys import PreparedPairs
from spgcl.methods.parts.encoders import gcn_encoder
from spgcl.methods.parts.reconstruction import reconstruction
from spgcl.methods.ranges import Count, Fraction, Positive, SizesMemory, Width


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
        self.first = gcn_encoder(
            num_features, hidden, layers=1, activation="relu", dropout=dropout, batch_norm=batch_norm
        )
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
