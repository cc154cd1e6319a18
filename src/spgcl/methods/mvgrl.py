"""MVGRL: nodes of one view are matched with the summary of the other (Hassani and Khasahmadi, ICML 2020)."""

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import torch
from scipy import sparse
from torch import Tensor

from spgcl.engine.device import by_device, can_capture
from spgcl.engine.encoders import Activation, BatchNorm, Encoder
from spgcl.engine.patterns import Pattern
from spgcl.engine.tensors import DENSE_FROM, GraphTensors, SparseMatrix
from spgcl.graph import Graph
from spgcl.methods.memory import require_bytes
from spgcl.methods.method import Method, Prepared
from spgcl.methods.parts.augment import shuffle_nodes
from spgcl.methods.parts.diffusion import EXACT_UP_TO, heat, personalised_pagerank, sharpened
from spgcl.methods.parts.discriminators import Bilinear, noise_contrastive, summarise
from spgcl.methods.ranges import Count, Factor, Positive, Range, Width

# Entries kept per row if a graph is too large to keep all.
KEPT_ABOVE = 64


@dataclass(eq=False, kw_only=True)
class PreparedMVGRL(Prepared):
    """A graph and its diffusion.

    Attributes:
        diffused: The same nodes and features, with the diffusion as adjacency.
    """

    diffused: GraphTensors


class MVGRL(Method[PreparedMVGRL]):
    """DGI across two views, the graph and its diffusion, with an encoder each.

    Args:
        diffusion: Personalised PageRank (Eq. 3 of the paper) or the heat kernel (Eq. 2).
        restart: Probability that a walk of personalised PageRank restarts (alpha).
        time: How long heat spreads (t).
        keep: Largest entries kept per row of the diffusion; 0 keeps all up to 5,000 nodes and 64 above.
        sharpen: Drop small entries of the diffusion and divide its columns by their largest one.
    """

    static = True

    def __init__(
        self,
        num_features: int,
        *,
        layers: Factor = 2,
        hidden: Width = 512,
        activation: Activation = "prelu",
        batch_norm: BatchNorm = "plain",
        normalise_features: bool = False,
        diffusion: Literal["ppr", "heat"] = "heat",
        restart: Annotated[float, Range(least=0.01, most=1)] = 0.4,
        time: Annotated[float, Range(most=100)] = 10.0,
        keep: int = 0,
        sharpen: bool = False,
        steps: Count = 300,
        learning_rate: Positive = 3e-4,
        weight_decay: float = 1e-5,
    ) -> None:
        super().__init__(steps, learning_rate, weight_decay, normalise_features)
        self.encoder, self.diffused_encoder = (
            Encoder(num_features, hidden=hidden, layers=layers, activation=activation, batch_norm=batch_norm)
            for _ in range(2)
        )
        self.discriminator = Bilinear(hidden, hidden)
        self.diffusion, self.restart, self.time = diffusion, restart, time
        self.keep, self.sharpen = keep, sharpen

    def prepare(self, graph: Graph, device: torch.device, supervision: Any = None) -> PreparedMVGRL:
        """Compute the diffusion, if memory suffices."""
        keep = self.keep or (KEPT_ABOVE if graph.num_nodes > EXACT_UP_TO else 0)
        # An entry takes a float32 and an int32.
        needed = 8 * graph.num_nodes * min(keep or graph.num_nodes, graph.num_nodes)
        require_bytes("the diffusion", needed, ["keep"])
        if self.diffusion == "ppr":
            matrix = personalised_pagerank(graph, restart=self.restart, keep=keep, device=device)
        else:
            matrix = heat(graph, time=self.time, keep=keep, device=device)
        if self.sharpen:
            matrix = sharpened(matrix, graph)
        tensors = self.on_device(graph, device)
        return PreparedMVGRL(
            tensors, diffused=GraphTensors(tensors.features, diffusion_on_device(matrix, device))
        )

    def is_static(self, prepared: PreparedMVGRL) -> bool:
        """Whether products with both graphs are kernels of fixed shapes, as on CUDA."""
        return super().is_static(prepared) and prepared.diffused.capturable

    def loss(self, prepared: PreparedMVGRL, step: int, generator: torch.Generator) -> Tensor:
        """Score nodes of either view, real and equally shuffled ones, against the other view's summary."""
        shuffled = shuffle_nodes(prepared.graph, generator)
        real = self.encoder(prepared.graph, None, generator)
        fake = self.encoder(shuffled, None, generator)
        diffused_real = self.diffused_encoder(prepared.diffused, None, generator)
        diffused_fake = self.diffused_encoder(
            replace(prepared.diffused, features=shuffled.features), None, generator
        )
        summary, diffused_summary = summarise(real), summarise(diffused_real)
        score = self.discriminator.against
        return noise_contrastive(
            torch.cat([score(diffused_real, summary), score(real, diffused_summary)]),
            torch.cat([score(diffused_fake, summary), score(fake, diffused_summary)]),
        )

    def embed(self, prepared: PreparedMVGRL) -> Tensor:
        """The sum of both encoders' outputs."""
        return self.encoder.embed(prepared.graph) + self.diffused_encoder.embed(prepared.diffused)


class FullMatrix(SparseMatrix):
    """Compressed rows that also store zeros: their values are the dense matrix, and products are dense."""

    @property
    def capturable(self) -> bool:
        """On CUDA; dense products always have the same shapes."""
        return can_capture(self.values)

    def dense(self) -> Tensor:
        """The matrix, not copied."""
        return self.values.view(self.shape)

    def __matmul__(self, dense: Tensor) -> Tensor:
        return self.dense().to(dense.dtype) @ dense


def diffusion_on_device(matrix: sparse.csr_array, device: torch.device) -> SparseMatrix:
    """A diffusion on a device, in the form whose products are faster."""
    num_nodes = matrix.shape[0]
    density = matrix.nnz / num_nodes**2
    if num_nodes > EXACT_UP_TO or density < by_device(DENSE_FROM, device):
        return SparseMatrix.of(matrix, device)
    rows = torch.arange(0, num_nodes**2 + 1, num_nodes, dtype=torch.int32, device=device)
    columns = torch.arange(num_nodes, dtype=torch.int32, device=device).repeat(num_nodes)
    values = torch.as_tensor(matrix.toarray().reshape(-1), device=device)
    return FullMatrix(Pattern(rows, columns, num_nodes), values)
