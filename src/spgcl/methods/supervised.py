"""The supervised baselines: GCN (Kipf and Welling, ICLR 2017) and MLP, one classifier per split."""

import hashlib
import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import one_hot

from spgcl.datasets.dataset import Splits
from spgcl.engine.convolutions import MESSAGE_PASSING, EncoderKind
from spgcl.engine.encoders import drop
from spgcl.engine.optimiser import Adam
from spgcl.engine.tensors import GraphTensors
from spgcl.errors import InputError
from spgcl.graph import Graph
from spgcl.methods.method import Method, Prepared
from spgcl.methods.parts.augment import drop_features
from spgcl.methods.parts.message_classifiers import MessageClassifiers
from spgcl.methods.ranges import Count, Fraction, Positive, Width


@dataclass(frozen=True, eq=False)
class Supervision:
    """The labels that every model sees: those of its own split's training and validation nodes.

    Attributes:
        labels: Class of a model's training and validation nodes, -1 at all others, shape (models, nodes).
        validation: Which of them are validation nodes, shape (models, nodes).
        num_classes: How many classes there are.
    """

    labels: NDArray[np.int64]
    validation: NDArray[np.bool_]
    num_classes: int

    @classmethod
    def of(cls, labels: Any, splits: Splits) -> "Supervision":
        """The labels of `splits.restarts` models per split."""
        values = np.asarray(labels)
        if values.shape != splits.train.shape[1:] or values.dtype.kind not in "iub":
            raise InputError(
                f"labels of type {values.dtype} and shape {values.shape} for splits over "
                f"{splits.train.shape[1]} nodes; give one whole number per node"
            )
        visible = splits.train | splits.validation
        if (values[visible.any(axis=0)] < 0).any():
            raise InputError("a training or validation node has no label; leave it out of the splits")
        own = np.where(visible, values, -1).astype(np.int64)
        models = splits.restarts
        return cls(
            own.repeat(models, axis=0), splits.validation.repeat(models, axis=0), int(values.max()) + 1
        )

    @property
    def task(self) -> tuple[int, int]:
        """Number of models and of classes, which decide the shapes of the weights."""
        return len(self.labels), self.num_classes

    def record(self) -> dict[str, Any]:
        """What `run.json` stores: the digest identifies the labels and splits that the models saw."""
        seen = hashlib.sha256(self.labels.tobytes() + np.packbits(self.validation).tobytes())
        return {"models": len(self.labels), "classes": self.num_classes, "digest": seen.hexdigest()}


@dataclass(eq=False)
class PreparedTargets(Prepared):
    """A graph with one-hot labels, divided by their number per model, shape (nodes, models, classes)."""

    train: Tensor | None = None
    validation: Tensor | None = None

    @classmethod
    def of(cls, graph: GraphTensors, supervision: Supervision | None) -> "PreparedTargets":
        """Without supervision, as for a graph that is only embedded, there are no targets."""
        if supervision is None:
            return cls(graph)
        labels = torch.from_numpy(supervision.labels.T.copy()).to(graph.device)
        validation = torch.from_numpy(supervision.validation.T.copy()).to(graph.device)
        hot = one_hot(labels.clamp(min=0), supervision.num_classes).float()
        parts = [part.float() for part in ((labels >= 0) & ~validation, validation)]
        train, held_out = (hot * (part / part.sum(dim=0))[:, :, None] for part in parts)
        return cls(graph, train=train, validation=held_out)


class Classifiers(nn.Module):
    """Two-layer networks that share no weights, side by side, each with its best weights so far.

    Args:
        num_features: Width of the graph's features.
        shape: How many networks, the width of their first layer, and how many classes they predict.
        dropout: Fraction of each layer's inputs dropped in training.
        propagate: Whether layers are graph convolutions.
    """

    def __init__(
        self, num_features: int, shape: tuple[int, int, int], *, dropout: float, propagate: bool
    ) -> None:
        super().__init__()
        num_models, hidden, num_classes = self.shape = shape
        self.dropout, self.propagate = dropout, propagate
        self.first = nn.Parameter(_glorot(num_features, hidden, (num_features, num_models * hidden)))
        self.second = nn.Parameter(_glorot(hidden, num_classes, self.shape))
        self.first_bias = nn.Parameter(torch.zeros(num_models * hidden))
        self.second_bias = nn.Parameter(torch.zeros(num_models, num_classes))
        # Buffers, so that checkpoints and saved weights contain the best weights.
        for name, weights in list(self.named_parameters()):
            self.register_buffer(f"best_{name}", weights.detach().clone())
        self.register_buffer("best_right", torch.full((num_models,), -1))
        self.register_buffer("best_loss", torch.zeros(num_models))

    def forward(self, graph: GraphTensors, generator: torch.Generator | None) -> Tensor:
        """Class scores, shape (nodes, models, classes), with dropout if a generator is given."""
        return self._scores(graph, generator, dict(self.named_parameters()))

    def best(self, graph: GraphTensors) -> Tensor:
        """Class scores by the weights that were best on validation nodes."""
        kept = {name.removeprefix("best_"): weights for name, weights in self.named_buffers()}
        return self._scores(graph, None, kept)

    def _scores(
        self, graph: GraphTensors, generator: torch.Generator | None, weights: dict[str, Tensor]
    ) -> Tensor:
        num_models, width, num_classes = self.shape
        features = graph.features
        if generator is not None and self.dropout:
            features = drop_features(graph, self.dropout, generator).features
        scale = 1 / (1 - self.dropout) if generator is not None else 1.0
        hidden = self._propagated(graph, scale * (features @ weights["first"])) + weights["first_bias"]
        hidden = hidden.relu().view(-1, num_models, width)
        if generator is not None:
            hidden = drop(hidden, self.dropout, generator)
        outputs = torch.einsum("nmh,mhc->nmc", hidden, weights["second"]).reshape(len(hidden), -1)
        outputs = self._propagated(graph, outputs).view(-1, num_models, num_classes)
        return outputs + weights["second_bias"]

    def _propagated(self, graph: GraphTensors, rows: Tensor) -> Tensor:
        return graph.adjacency @ rows if self.propagate else rows

    @torch.no_grad()
    def keep(self, models: Tensor) -> None:
        """Keep the weights of those models, given as a mask."""
        buffers = dict(self.named_buffers())
        for name, weights in self.named_parameters():
            # A model owns columns of the first layer, and a block of the second.
            columns = models.repeat_interleave(self.shape[1])
            where = columns if name.startswith("first") else models.view(-1, *[1] * (weights.ndim - 1))
            kept = buffers[f"best_{name}"]
            kept.copy_(torch.where(where, weights, kept))

    def weights(self) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
        """The first layer's weights, which decay, and all others."""
        return [self.first], [self.first_bias, self.second, self.second_bias]


def _glorot(width: int, out_width: int, shape: tuple[int, ...]) -> Tensor:
    bound = math.sqrt(6 / (width + out_width))
    return torch.empty(shape).uniform_(-bound, bound)


def cross_entropies(scores: Tensor, targets: Tensor) -> Tensor:
    """Mean cross-entropy of every model over its targets, shape (models,)."""
    return -(scores.log_softmax(dim=2) * targets).sum(dim=(0, 2))


class SupervisedMethod(Method[PreparedTargets]):
    """Two layers that predict classes, one model per split, trained on its labels.

    Args:
        num_models: How many models, each with labels of its own.
        num_classes: How many classes they predict.
        hidden: Width of the first layer.
        dropout: Fraction of each layer's inputs dropped in training.
        steps: Updates of the weights; a model keeps those of its best step on the validation nodes.
        learning_rate: Of Adam.
        weight_decay: Strength of L2 regularisation of the first layer's weights.
    """

    supervised = True
    static = True

    def __init__(
        self,
        encoder: EncoderKind,
        num_features: int,
        num_models: int,
        num_classes: int,
        *,
        hidden: Width,
        dropout: Fraction,
        normalise_features: bool = False,
        steps: Count = 500,
        learning_rate: Positive,
        weight_decay: float = 5e-5,
    ) -> None:
        super().__init__(steps, learning_rate, weight_decay, normalise_features)
        shape = (num_models, hidden, num_classes)
        self.classifiers: Classifiers | MessageClassifiers
        if encoder in MESSAGE_PASSING:
            self.classifiers = MessageClassifiers(num_features, shape, kind=encoder, dropout=dropout)
        else:
            self.classifiers = Classifiers(num_features, shape, dropout=dropout, propagate=encoder != "mlp")
        # What the last loss was computed on: `after_step`, which compares weights, gets no graph.
        self.trained_on: PreparedTargets | None = None

    def is_static(self, prepared: PreparedTargets) -> bool:
        """Message-passing layers leave out self loops, which waits for the host."""
        return super().is_static(prepared) and isinstance(self.classifiers, Classifiers)

    def prepare(self, graph: Graph, device: torch.device, supervision: Any = None) -> PreparedTargets:
        """Also arrange the labels by model."""
        return PreparedTargets.of(self.on_device(graph, device), supervision)

    def loss(self, prepared: PreparedTargets, step: int, generator: torch.Generator) -> Tensor:
        """Summed cross-entropies on the training nodes: every model's gradient is that of its own."""
        if prepared.train is None:
            raise InputError("a supervised method is trained with labels, and was prepared without any")
        self.trained_on = prepared
        return cross_entropies(self.classifiers(prepared.graph, generator), prepared.train).sum()

    def optimiser(self) -> Adam:
        """Adam with L2 regularisation of the first layer alone, as in Kipf and Welling."""
        first, rest = self.classifiers.weights()
        return Adam([(first, self.weight_decay), (rest, 0.0)], self.learning_rate, decoupled=False)

    @torch.no_grad()
    def after_step(self, step: int) -> None:
        """Keep a model's weights if more validation nodes are right than before; the loss breaks ties."""
        prepared = self.trained_on
        assert prepared is not None and prepared.validation is not None
        scores = self.classifiers(prepared.graph, None)
        chosen = prepared.validation.gather(2, scores.argmax(dim=2, keepdim=True))
        # Nodes are counted: sums of fractions depend on their order, and would miss ties.
        right = (chosen > 0).sum(dim=(0, 2))
        losses = cross_entropies(scores, prepared.validation)
        buffers = dict(self.classifiers.named_buffers(recurse=False))
        before, loss = buffers["best_right"], buffers["best_loss"]
        better = (right > before) | ((right == before) & (losses < loss))
        before.copy_(torch.where(better, right, before))
        loss.copy_(torch.where(better, losses, loss))
        self.classifiers.keep(better)

    @torch.no_grad()
    def embed(self, prepared: PreparedTargets) -> Tensor:
        """Class scores (logits) of all models side by side, shape (nodes, models * classes)."""
        return self.classifiers.best(prepared.graph).flatten(1)


class SupervisedGCN(SupervisedMethod):
    """Two graph convolutions that predict classes, one model per split, trained on its labels.

    Args:
        encoder: Kind of the layers; gcn is the paper's.
    """

    def __init__(
        self,
        *sizes: int,
        encoder: Literal["gcn", "gat", "gin", "sage"] = "gcn",
        hidden: Width = 64,
        dropout: Fraction = 0.2,
        learning_rate: Positive = 0.01,
        **shared: Any,
    ) -> None:
        shared |= {"hidden": hidden, "dropout": dropout, "learning_rate": learning_rate}
        super().__init__(encoder, *sizes, **shared)


class SupervisedMLP(SupervisedMethod):
    """Two layers that predict classes without edges, one model per split, trained on its labels."""

    def __init__(
        self,
        *sizes: int,
        hidden: Width = 256,
        dropout: Fraction = 0.5,
        learning_rate: Positive = 0.003,
        **shared: Any,
    ) -> None:
        shared |= {"hidden": hidden, "dropout": dropout, "learning_rate": learning_rate}
        super().__init__("mlp", *sizes, **shared)
