"""The contract between a method and everything else: what is prepared once, a loss, an embedding."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from spgcl.engine.encoders import Encoder
from spgcl.engine.optimiser import Adam
from spgcl.engine.tensors import GraphTensors
from spgcl.graph import Graph


@dataclass(eq=False)
class Prepared:
    """What a method computes once for a graph.

    Attributes:
        graph: The graph on its device.
        memory: What goes from step to step besides weights (for curves, or drawn for several steps at
            once); travels with checkpoints.
        watching: Whether health curves are asked for, so that `memory` is worth keeping.
    """

    graph: GraphTensors
    memory: dict[str, Tensor] = field(default_factory=dict)
    watching: bool = False


class Method(nn.Module):
    """A way to turn a graph into a scalar loss and, in the end, into embeddings. Subclass once.

    Hyper-parameters are the keyword-only arguments of the constructor; `steps`, `learning_rate` and
    `weight_decay` are among them for every method that trains, and for no other.
    """

    # Whether weights learned on one graph can embed another one.
    inductive: ClassVar[bool] = True
    # Whether features are looked at; if not, a graph needs none.
    reads_features: ClassVar[bool] = True
    # Whether labels are needed to train.
    supervised: ClassVar[bool] = False
    # Whether every step is the same operations on the same shapes, and never waits for the host, where the
    # products with the graph are so.
    static: ClassVar[bool] = False
    # Whether weight decay shrinks the weights themselves (AdamW), or is a gradient of their squares (Adam).
    decoupled_decay: ClassVar[bool] = True

    # Whether feature rows are divided by their L1 norm.
    normalise_features: bool = False
    # What `embed` evaluates, unless a method has another way.
    encoder: Encoder
    # Products of two numbers that a step makes for every pair of nodes; 0 unless it goes over all pairs.
    products_a_pair: float = 0.0
    # The setting, with a value, by which a step would go over fewer pairs.
    fewer_pairs: ClassVar[str] = ""
    # Without steps there is nothing to train: neither a loss nor an optimiser is asked for.
    steps: int = 0
    learning_rate: float = 0.0
    weight_decay: float = 0.0

    def allocate(self, num_nodes: int) -> None:
        """Make the weights that a node has of its own; called before training or loading."""

    def prepare(self, graph: Graph, device: torch.device, supervision: Any = None) -> Prepared:
        """Compute what does not change during training: the normalised adjacency and features."""
        return Prepared(GraphTensors.of(graph, device, normalise_features=self.normalise_features))

    def loss(self, prepared: Prepared, step: int, generator: torch.Generator) -> Tensor | None:
        """The scalar to minimise at this step; None, as here, when there is nothing to train."""
        return None

    def is_static(self, prepared: Prepared) -> bool:
        """Whether steps on this graph are all alike; an accelerator then records one and replays it."""
        return self.static and prepared.graph.capturable

    def trained_weights(self) -> list[nn.Parameter]:
        """The weights that an optimiser gets."""
        return [weight for weight in self.parameters() if weight.requires_grad]

    def optimiser(self) -> Adam:
        """The optimiser of the weights that are trained."""
        groups = [(self.trained_weights(), self.weight_decay)]
        return Adam(groups, self.learning_rate, decoupled=self.decoupled_decay)

    def learning_rate_at(self, step: int) -> float:
        """The learning rate of a step; the same for all unless a method has a schedule."""
        return self.learning_rate

    def after_step(self, step: int) -> None:
        """Whatever follows an update of the weights, such as moving averages."""

    def embed(self, prepared: Prepared) -> Tensor:
        """Embeddings of all nodes, shape (num_nodes, width), without gradient: the encoder's output."""
        return self.encoder.embed(prepared.graph)

    def space(self, prepared: Prepared) -> Tensor:
        """Vectors by whose cosine similarity the method judges nodes alike; the embeddings by default."""
        return self.embed(prepared)

    def observe(self, prepared: Prepared) -> dict[str, float]:
        """Numbers that show, without labels, how training goes; called between steps."""
        return {}
