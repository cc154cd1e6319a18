"""Skip-gram with negative sampling over walks, which DeepWalk and node2vec share."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import embedding, logsigmoid

from spgcl.engine.autograd import apply
from spgcl.engine.device import sum_type
from spgcl.engine.tensors import GraphTensors
from spgcl.errors import InputError
from spgcl.graph import Graph
from spgcl.methods.method import Method, Prepared
from spgcl.methods.parts.walks import ENDED, WalkGraph, expected_visits, random_walks
from spgcl.methods.ranges import Count, Positive, Range, Size, SizesMemory, Width

# Walks drawn at once, for several steps.
WALKS_PER_DRAW = 16384
# Walks whose scores are in memory at once.
WALKS_PER_BLOCK = 2048
# Exponent of the noise distribution in word2vec.
NOISE_POWER = 0.75

WalkLength = Annotated[int, Range(least=2), SizesMemory.STEP]


@dataclass(eq=False, kw_only=True)
class PreparedWalks(Prepared):
    """A graph to walk on.

    Attributes:
        paths: The edges, as walks read them.
        noise: Cumulative noise distribution over all nodes.
    """

    paths: WalkGraph
    noise: Tensor


def skip_gram(
    centres: Tensor, contexts: Tensor, noise: Tensor, present: Tensor, *, window: int, negatives: int
) -> Tensor:
    """The skip-gram objective with negative sampling, summed over the pairs of some walks.

    Two nodes of a walk at distance d count (window + 1 - d) / window: the probability that they are in the
    window of word2vec, which it shrinks at random. A walk's noise nodes serve all its centres: their mean
    times `negatives` has the expectation of that many independent draws for every pair.

    Args:
        centres: Vectors of the nodes as centres, shape (walks, length, width).
        contexts: Vectors of the same nodes as contexts.
        noise: Context vectors of the noise nodes, shape (walks, draws, width).
        present: Which positions hold a node, shape (walks, length).
        window: Largest distance of a pair.
        negatives: Noise nodes per pair.
    """
    weights = pair_weights(present, window, centres.dtype)
    attraction = (weights * logsigmoid(centres @ contexts.mT)).sum()
    repulsion = (weights.sum(dim=2) * logsigmoid(-centres @ noise.mT).mean(dim=2)).sum()
    return -attraction - negatives * repulsion


def pair_weights(present: Tensor, window: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Weight of each pair of positions in a walk, shape (walks, length, length)."""
    positions = torch.arange(present.shape[1], device=present.device)
    distances = (positions[:, None] - positions).abs().to(dtype)
    weights = ((window + 1 - distances) / window).clamp(min=0).fill_diagonal_(0)
    return weights * (present[:, :, None] & present[:, None, :])


class Vectors(nn.Module):
    """Two vectors per node, as centre and as context, initialised as in word2vec, and an order of nodes."""

    order: Tensor

    def __init__(self, num_nodes: int, width: int) -> None:
        super().__init__()
        self.centres = nn.Parameter((torch.rand(num_nodes, width) - 0.5) / width)
        # Dense gradients for Adam: a step's walks, too, grow with the graph, and cost far more.
        self.contexts = nn.Parameter(torch.zeros(num_nodes, width))
        self.register_buffer("order", torch.randperm(num_nodes))


class WalkMethod(Method[PreparedWalks]):
    """What DeepWalk and node2vec share: vectors learned from random walks.

    Args:
        hidden: Width of the embedding (d).
        window: Largest distance in a walk of two nodes that attract.
        negatives: Noise nodes per pair.
        steps: Updates over which the walks are distributed.
        learning_rate: Of Adam; falls linearly to 0.
    """

    inductive = False
    reads_features = False

    def __init__(
        self,
        p: float = 1.0,
        q: float = 1.0,
        *,
        hidden: Width = 256,
        walks: Size,
        walk_length: WalkLength = 80,
        window: Size = 10,
        negatives: Size = 1,
        steps: Count = 1000,
        learning_rate: Positive = 0.01,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(steps, learning_rate, weight_decay)
        self.hidden, self.walks, self.walk_length, self.p, self.q = hidden, walks, walk_length, p, q
        self.window, self.negatives = window, negatives

    def allocate(self, num_nodes: int) -> None:
        """Two vectors per node."""
        self.skip_gram = Vectors(num_nodes, self.hidden)

    def prepare(self, graph: Graph, device: torch.device, supervision: Any = None) -> PreparedWalks:
        """Copy the edges and compute the noise distribution."""
        num_vectors = len(self.skip_gram.order)
        if num_vectors != graph.num_nodes:
            raise InputError(
                f"there are vectors for {num_vectors} nodes, but the graph has {graph.num_nodes}; "
                "fit this graph on its own"
            )
        # Differs from word2vec: frequencies are the expected ones of unbiased walks, not counts.
        sums = np.cumsum(expected_visits(graph, self.walk_length) ** NOISE_POWER)
        noise = torch.from_numpy(sums / sums[-1]).to(device=device, dtype=sum_type(device))
        return PreparedWalks(GraphTensors.of(graph, device), paths=WalkGraph.of(graph, device), noise=noise)

    def loss(self, prepared: PreparedWalks, step: int, generator: torch.Generator) -> Tensor:
        """Mean of the skip-gram objective over the pairs of this step's walks."""
        walks = self._walks(prepared, step, generator)
        # No pair is further apart than a walk is long.
        shape = (len(walks), self.negatives * min(self.window, self.walk_length - 1))
        draws = torch.rand(
            shape, generator=generator, dtype=prepared.noise.dtype, device=prepared.noise.device
        )
        noise = torch.searchsorted(prepared.noise, draws, right=True)
        # Isolated nodes alone make no pair; then the sum is 0 as well.
        pairs = sum_of_weights(walks != ENDED, self.window).clamp(min=1)
        centres, contexts = self.skip_gram.centres, self.skip_gram.contexts
        if len(walks) <= WALKS_PER_BLOCK:
            return self._sum(centres, contexts, walks, noise) / pairs
        total = torch.zeros((), device=walks.device)
        for start in range(0, len(walks), WALKS_PER_BLOCK):
            block = slice(start, start + WALKS_PER_BLOCK)
            total = total + apply(_Recomputed, self._sum, centres, contexts, walks[block], noise[block])
        return total / pairs

    def learning_rate_at(self, step: int) -> float:
        """Falls linearly, to 0 after the last step, as in word2vec."""
        return self.learning_rate * (1 - step / self.steps)

    def embed(self, prepared: PreparedWalks) -> Tensor:
        """The vectors of the nodes as centres."""
        return self.skip_gram.centres.detach().clone()

    def _walks(self, prepared: PreparedWalks, step: int, generator: torch.Generator) -> Tensor:
        """The walks of a step; those of several steps are drawn together and kept."""
        order = self.skip_gram.order
        batch = math.ceil(len(order) * self.walks / self.steps)
        shared = max(1, WALKS_PER_DRAW // batch)
        position = step % shared
        if not position or "walks" not in prepared.memory:
            first, last = step - position, min(step - position + shared, self.steps)
            turns = torch.arange(first * batch, last * batch, device=order.device)
            starts = order[turns % len(order)]
            prepared.memory["walks"] = random_walks(
                prepared.paths, starts, self.walk_length, generator, p=self.p, q=self.q
            )
        return prepared.memory["walks"][position * batch : (position + 1) * batch]

    def _sum(self, centres: Tensor, contexts: Tensor, walks: Tensor, noise: Tensor) -> Tensor:
        nodes = walks.clamp(min=0)
        return skip_gram(
            embedding(nodes, centres),
            embedding(nodes, contexts),
            embedding(noise, contexts),
            walks != ENDED,
            window=self.window,
            negatives=self.negatives,
        )


def sum_of_weights(present: Tensor, window: int) -> Tensor:
    """Sum of `pair_weights` for walks that do not resume once they have ended."""
    distances = range(1, min(window + 1, present.shape[1]))
    counts = torch.stack([present[:, distance:].sum() for distance in distances])
    weights = [2 * (window + 1 - distance) / window for distance in distances]
    return (counts * torch.tensor(weights, device=present.device)).sum()


class _Recomputed(torch.autograd.Function):
    """A sum over walks that is recomputed for its gradient, instead of keeping intermediate results.

    `torch.utils.checkpoint` imports the compiler, which takes seconds, and leaves reference cycles.
    """

    @staticmethod
    def forward(
        ctx: Any,
        function: Callable[..., Tensor],
        centres: Tensor,
        contexts: Tensor,
        walks: Tensor,
        noise: Tensor,
    ) -> Tensor:
        ctx.function = function
        ctx.save_for_backward(centres, contexts, walks, noise)
        return function(centres, contexts, walks, noise)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        centres, contexts, walks, noise = ctx.saved_tensors
        weights = [one.detach().requires_grad_() for one in (centres, contexts)]
        with torch.enable_grad():
            total = ctx.function(*weights, walks, noise)
        return None, *torch.autograd.grad(total, weights, gradient), None, None
