"""The contract between a method and everything else: what is prepared once, a loss, an embedding."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, cast

import torch
from torch import Tensor, nn
from typing_extensions import TypeVar

from spgcl.engine.encoders import Encoder
from spgcl.engine.optimiser import Adam
from spgcl.engine.tensors import GraphTensors
from spgcl.graph import Graph


@dataclass(eq=False)
class Prepared:
    """What a method computes once for a graph.

    Attributes:
        graph: The graph on its device.
        memory: State besides weights that steps share (for curves, or drawn for several steps at once);
            saved in checkpoints.
        watching: Whether health curves are asked for; only they need some of `memory`.
        drawn: What `Method.draw` drew ahead for the next step, or None.
    """

    graph: GraphTensors
    memory: dict[str, Tensor] = field(default_factory=dict)
    watching: bool = False
    drawn: Any = None


P = TypeVar("P", bound=Prepared, default=Any)


class Method(nn.Module, Generic[P]):
    """A way to turn a graph into a scalar loss and, in the end, into embeddings. Subclass once.

    Hyper-parameters are the keyword-only arguments of a subclass's constructor; `steps`, `learning_rate` and
    `weight_decay` are among them for every method that trains, and for no other. Those below mean the same
    in all methods that have them; a method documents the others, and those that mean something else in it.

    Args:
        num_features: Width of the graph's features.
        layers: Convolutions in the encoder.
        hidden: Width of the encoder and of the embedding.
        activation: Activation of the encoder.
        batch_norm: After every convolution: none, without learnable scale and shift, or with them.
        normalise_features: Divide feature rows by their L1 norm.
        steps: Updates of the weights.
        learning_rate: Of AdamW.
        weight_decay: Of AdamW.
    """

    # Whether weights learned on one graph can embed another one.
    inductive: ClassVar[bool] = True
    # Whether features are used; if not, a graph needs none.
    reads_features: ClassVar[bool] = True
    # Whether labels are needed to train.
    supervised: ClassVar[bool] = False
    # Whether every step runs the same operations on the same shapes without waiting for the host, provided
    # that the products with the graph do.
    static: ClassVar[bool] = False
    # Whether weight decay shrinks the weights directly (AdamW) or is added to the gradient (Adam).
    decoupled_decay: ClassVar[bool] = True

    # The setting, with a value, by which a step goes over fewer pairs.
    fewer_pairs: ClassVar[str] = ""

    # What `embed` evaluates by default, and what `space` puts on top of it if a method has one.
    encoder: Encoder
    head: nn.Sequential
    # Multiplications per pair of nodes in a step; 0 unless a step goes over all pairs.
    products_per_pair: float = 0.0

    def __init__(
        self,
        steps: int = 0,
        learning_rate: float = 0.0,
        weight_decay: float = 0.0,
        normalise_features: bool = False,
    ) -> None:
        super().__init__()
        # Without steps there is nothing to train: neither a loss nor an optimiser is asked for.
        self.steps, self.learning_rate, self.weight_decay = steps, learning_rate, weight_decay
        self.normalise_features = normalise_features

    @classmethod
    def sized_defaults(cls, num_nodes: int, num_edges: int) -> dict[str, Any]:
        """The defaults that are others on a graph of this size; none here."""
        del num_nodes, num_edges
        return {}

    def allocate(self, num_nodes: int) -> None:
        """Make the weights that belong to single nodes; called before training or loading."""

    def prepare(self, graph: Graph, device: torch.device, supervision: Any = None) -> P:
        """Compute what does not change during training: here, only the normalised graph."""
        return cast(P, Prepared(self.on_device(graph, device)))

    def on_device(self, graph: Graph, device: torch.device) -> GraphTensors:
        """The normalised adjacency and, if asked, normalised features on a device."""
        return GraphTensors.of(graph, device, normalise_features=self.normalise_features)

    def loss(self, prepared: P, step: int, generator: torch.Generator) -> Tensor | None:
        """The scalar to minimise at this step; None, as here, when there is nothing to train."""
        return None

    def draw(self, prepared: P, generator: torch.Generator) -> Any:
        """What a loss draws before it reads weights, and may draw ahead; None if nothing."""
        return None

    def is_static(self, prepared: P) -> bool:
        """Whether steps on this graph are all alike, so that one can be captured as a CUDA graph."""
        return self.static and prepared.graph.capturable

    def trained_weights(self) -> list[nn.Parameter]:
        """The weights that the optimiser gets."""
        return [weight for weight in self.parameters() if weight.requires_grad]

    def optimiser(self) -> Adam:
        """The optimiser of the trained weights."""
        groups = [(self.trained_weights(), self.weight_decay)]
        return Adam(groups, self.learning_rate, decoupled=self.decoupled_decay)

    def learning_rate_at(self, step: int) -> float:
        """The learning rate of a step; the same for all unless a method has a schedule."""
        return self.learning_rate

    def after_step(self, step: int) -> None:
        """What follows an update of the weights, such as moving averages."""

    def embed(self, prepared: P) -> Tensor:
        """Embeddings of all nodes, shape (num_nodes, width), without gradient: the encoder's output."""
        return self.encoder.embed(prepared.graph)

    @torch.no_grad()
    def space(self, prepared: P) -> Tensor:
        """Vectors that the method compares: the output of its projection head, or else the embeddings."""
        vectors = self.embed(prepared)
        return self.head(vectors) if hasattr(self, "head") else vectors

    def needs_memory(self) -> str:
        """What to do to train or embed on a graph larger than memory; empty if its rows suffice."""
        return "choose a method whose steps read rows of the graph (spgcl, untrained, auto) or raise --memory"

    def findings(self) -> dict[str, Any]:
        """What the method learned about the graph without being trained, for the record of a run."""
        return {}

    def observe(self, prepared: P) -> dict[str, float]:
        """Numbers that show, without labels, how training goes; called between steps."""
        return {}
