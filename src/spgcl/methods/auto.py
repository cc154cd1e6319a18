"""Auto: the channels of a graph, each counted by how well it repeats itself. Nothing is trained."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from spgcl.engine.axes import leading_axes, principal_axes
from spgcl.engine.tensors import GraphTensors
from spgcl.errors import note
from spgcl.graph import Graph
from spgcl.graph.scaling import column_scales, unit_features
from spgcl.methods.method import Method, Prepared
from spgcl.methods.parts.channels import CHANNELS, DEGREE_CENTRES, Surroundings, dense, widths
from spgcl.methods.parts.halves import (
    COMPARED,
    REPEATS,
    agreements,
    axis_reliabilities,
    channels_on,
    incomparable,
)
from spgcl.methods.parts.weights import channel_record, channel_weights
from spgcl.methods.ranges import Width

# Features are reduced to so many axes before they are propagated.
AXES = 1024
# Rows and entries that axes are computed from.
SAMPLED_ROWS, SAMPLED_ENTRIES = 2**14, 2**27
# What every axis of a channel counts besides its reliability; and halves that this is averaged over.
FLOOR, AXIS_REPEATS = 0.3, 2
# Length of a vector, about, at which 1,000 epochs of the paper's probe suffice.
LENGTH = 16.0


@dataclass(eq=False, kw_only=True)
class PreparedAuto(Prepared):
    """A graph with what carries its features, and those features on the axes."""

    around: Surroundings
    features: Tensor


class Auto(Method[PreparedAuto]):
    """Channels of a graph weighted by split-half reliability, reduced to their leading axes.

    What is learned (scales, axes, weights) comes from the first graph that is prepared, without labels; other
    graphs get vectors on the same axes.

    Args:
        hidden: Most columns of the embedding.
    """

    learned: Tensor
    offsets: Tensor
    scales: Tensor
    axes: Tensor | None
    centres: Tensor
    degree_means: Tensor
    agreement: Tensor
    weights: Tensor
    mixing: Tensor

    def __init__(self, num_features: int, *, hidden: Width = 1024) -> None:
        super().__init__()
        self.widths = widths(min(num_features, AXES))
        width, count = min(hidden, sum(self.widths)), len(CHANNELS)
        shapes = {
            "learned": (),
            "offsets": (num_features,),
            "scales": (num_features,),
            "centres": (DEGREE_CENTRES,),
            "degree_means": (self.widths[-1],),
            "agreement": (REPEATS, count, count),
            "weights": (count,),
            "mixing": (sum(self.widths), width),
        }
        for name, shape in shapes.items():
            self.register_buffer(name, torch.zeros(shape))
        self.register_buffer("axes", torch.zeros(num_features, AXES) if num_features > AXES else None)

    @torch.no_grad()
    def prepare(self, graph: Graph, device: torch.device, supervision: Any = None) -> PreparedAuto:
        """Scale and reduce the features; on the first graph, learn how."""
        generator = torch.Generator().manual_seed(0)
        if not self.learned:
            offsets, scales = column_scales(graph.features)
            self.offsets.copy_(torch.as_tensor(offsets))
            self.scales.copy_(torch.as_tensor(scales))
        scaled = graph.with_features(
            unit_features(graph.features, self.offsets.cpu().numpy(), self.scales.cpu().numpy())
        )
        if not self.learned and self.axes is not None:
            rows = scaled.features[_sampled(graph.num_nodes, graph.num_features, generator).numpy()]
            rows = torch.as_tensor(rows.toarray() if sparse.issparse(rows) else rows, device=device)
            _fill(self.axes, leading_axes(rows, AXES, generator))
        prepared = self._on_axes(scaled, device)
        if not self.learned:
            self._learn(scaled, prepared, generator)
        return prepared

    def _on_axes(self, scaled: Graph, device: torch.device) -> PreparedAuto:
        """A graph whose features are scaled, with what carries them."""
        tensors = GraphTensors.of(scaled, device)
        features = dense(tensors.features) if self.axes is None else tensors.features @ self.axes
        return PreparedAuto(tensors, around=Surroundings.of(scaled, tensors), features=features)

    def _learn(self, scaled: Graph, prepared: PreparedAuto, generator: torch.Generator) -> None:
        """Weights of the channels and of their axes, and axes on which they are reduced together."""
        device = prepared.features.device
        self.centres.copy_(prepared.around.degree_centres())
        self.degree_means.copy_(prepared.around.degrees(self.centres).mean(dim=0))
        sample = _sampled(scaled.num_nodes, sum(self.widths), generator).to(device)
        channels = [channel[sample] for channel in self._channels(prepared)]
        problem = incomparable(scaled)
        if problem:
            note(f"{problem}: reliability cannot be estimated, and all channels count alike")
            self.weights.fill_(len(CHANNELS) ** -0.5)
            turns = [torch.eye(width, device=device) for width in self.widths]
        else:
            found = agreements(scaled, channels_on(device), repeats=REPEATS, seed=0)
            self.agreement.copy_(torch.as_tensor(found))
            self.weights.copy_(torch.as_tensor(channel_weights(found.mean(axis=0))))
            turns = self._turns(scaled, channels, sample)
        turns = [weight * turn for weight, turn in zip(self.weights, turns, strict=True)]
        rows = torch.cat([channel @ turn for channel, turn in zip(channels, turns, strict=True)], dim=1)
        mixing = leading_axes(rows, self.mixing.shape[1], generator)
        # The probe's optimiser moves every coordinate alike: it needs axes that carry alike.
        rotation = torch.linalg.qr(torch.randn(2 * mixing.shape[1:], generator=generator)).Q
        length = LENGTH / float(torch.linalg.norm(rows, dim=1).mean().clamp(min=1e-6))
        mixing = length * mixing @ rotation.to(mixing)
        parts = zip(turns, torch.split(mixing, self.widths), strict=True)
        _fill(self.mixing, torch.cat([turn @ part for turn, part in parts]))
        self.learned.fill_(1)

    def _turns(self, scaled: Graph, channels: Sequence[Tensor], sample: Tensor) -> list[Tensor]:
        """Per channel, its principal axes, each as long as it is reliable and a floor.

        Args:
            scaled: The graph.
            channels: Rows of the sampled nodes.
            sample: Those nodes, in random order. Axes come from other ones than those that are compared.
        """
        count = min(COMPARED, len(sample) // 2)
        bases = [principal_axes(channel[count:]) for channel in channels]
        reliabilities = axis_reliabilities(
            scaled,
            lambda half: self._channels(self._on_axes(half, sample.device)),
            bases,
            sample[:count],
            repeats=AXIS_REPEATS,
            seed=0,
        )
        return [basis * (FLOOR + values) for basis, values in zip(bases, reliabilities, strict=True)]

    def _channels(self, prepared: PreparedAuto) -> Iterator[Tensor]:
        return prepared.around.channels(prepared.features, self.centres, self.degree_means)

    @torch.no_grad()
    def embed(self, prepared: PreparedAuto) -> Tensor:
        """The weighted channels on their common axes."""
        return self.combined(self._channels(prepared), prepared.graph.num_nodes)

    def scaled_rows(self, features: NDArray[np.float32]) -> Tensor:
        """Some rows of dense features as channels begin with them: scaled, of length 1, on the axes."""
        offsets, scales = self.offsets.cpu().numpy(), self.scales.cpu().numpy()
        rows = torch.as_tensor(unit_features(features, offsets, scales)).to(self.mixing.device)
        return rows if self.axes is None else rows @ self.axes

    def combined(self, channels: Iterable[Tensor], num_rows: int) -> Tensor:
        """Vectors of some nodes from their rows of every channel."""
        result = self.mixing.new_zeros(num_rows, self.mixing.shape[1])
        for channel, mixing in zip(channels, torch.split(self.mixing, self.widths), strict=True):
            result.addmm_(channel, mixing)
        return result

    def needs_memory(self) -> str:
        """Nothing: what is learned comes from a part of the graph, and channels are products."""
        return ""

    def findings(self) -> dict[str, Any]:
        """Reliability and weight of every channel; nothing where halves could not be compared."""
        return channel_record(self.agreement.double().cpu().numpy()) if self.agreement.any() else {}


def _sampled(num_rows: int, width: int, generator: torch.Generator) -> Tensor:
    """Random rows, as many as axes are computed from."""
    most = max(1, min(SAMPLED_ROWS, SAMPLED_ENTRIES // width))
    return torch.randperm(num_rows, generator=generator)[:most]


def _fill(buffer: Tensor, axes: Tensor) -> None:
    """Fewer axes than asked for leave columns of 0."""
    buffer[:, : axes.shape[1]] = axes
