"""Skip-gram with negative sampling over walks: what DeepWalk and node2vec learn their vectors by."""

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
from spgcl.engine.tensors import GraphTensors
from spgcl.errors import InputError
from spgcl.graph import Graph
from spgcl.methods.method import Method, Prepared
from spgcl.methods.parts.walks import ENDED, WalkGraph, expected_visits, precision, random_walks
from spgcl.methods.ranges import Range, SizesMemory

# Walks drawn at once: as many steps share them as they suffice for.
WALKS_A_DRAW = 16384
# Walks whose scores are in memory at once.
WALKS_A_BLOCK = 2048
# Exponent of the noise distribution in word2vec.
NOISE_POWER = 0.75

WalkLength = Annotated[int, Range(least=2), SizesMemory.STEP]
Walk = Callable[[WalkGraph, Tensor, torch.Generator], Tensor]


@dataclass(eq=False, kw_only=True)
class WalkPrepared(Prepared):
    """A graph to walk on.

    Attributes:
        paths: The edges, as walks read them.
        noise: Running sums of the noise distribution over all nodes, up to 1.
    """

    paths: WalkGraph
    noise: Tensor


def skip_gram(
    centres: Tensor, contexts: Tensor, noise: Tensor, present: Tensor, *, window: int, negatives: int
) -> Tensor:
    """The skip-gram objective with negative sampling, summed over the pairs of some walks.

    Two nodes of a walk at distance d count (window + 1 - d) / window, the probability with which word2vec,
    which draws a smaller window at random, looks at them. A walk's noise nodes serve all its centres: their
    mean times `negatives` has the expectation of as many fresh draws for every pair.

    Args:
        centres: Vectors of the nodes as centres, shape (walks, length, width).
        contexts: Vectors of the same nodes as contexts.
        noise: Context vectors of the noise nodes, shape (walks, draws, width).
        present: Which places hold a node, shape (walks, length).
        window: Largest distance of a pair.
        negatives: Noise nodes a pair.
    """
    weights = pair_weights(present, window, centres.dtype)
    attraction = (weights * logsigmoid(centres @ contexts.mT)).sum()
    repulsion = (weights.sum(dim=2) * logsigmoid(-centres @ noise.mT).mean(dim=2)).sum()
    return -attraction - negatives * repulsion


def pair_weights(present: Tensor, window: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """How much each pair of places in a walk counts, shape (walks, length, length)."""
    places = torch.arange(present.shape[1], device=present.device)
    distances = (places[:, None] - places).abs().to(dtype)
    shares = ((window + 1 - distances) / window).clamp(min=0).fill_diagonal_(0)
    return shares * (present[:, :, None] & present[:, None, :])


class SkipGram(nn.Module):
    """Two vectors a node, as centre and as context, and the walks that they learn from.

    Args:
        hidden: Width of the vectors.
        walks: Walks from every node.
        walk_length: Nodes of a walk.
        window: Largest distance in a walk of two nodes that attract.
        negatives: Noise nodes a pair.
        steps: Updates that the walks are dealt out to.
    """

    centres: Tensor
    contexts: Tensor
    order: Tensor

    def __init__(
        self, *, hidden: int, walks: int, walk_length: int, window: int, negatives: int, steps: int
    ) -> None:
        super().__init__()
        self.hidden, self.walks, self.walk_length = hidden, walks, walk_length
        self.window, self.negatives, self.steps = window, negatives, steps

    def allocate(self, num_nodes: int) -> None:
        """Start as word2vec does: small random centres, contexts of zeros; and an order to start walks in."""
        self.centres = nn.Parameter((torch.rand(num_nodes, self.hidden) - 0.5) / self.hidden)
        # Adam goes over whole tables: a step's walks grow with the graph too, and cost far more.
        self.contexts = nn.Parameter(torch.zeros(num_nodes, self.hidden))
        self.register_buffer("order", torch.randperm(num_nodes))

    def prepare(self, graph: Graph, device: torch.device) -> WalkPrepared:
        """Copy the edges and sum up the noise distribution."""
        if len(self.centres) != graph.num_nodes:
            raise InputError(
                f"there are vectors for {len(self.centres)} nodes, but the graph has {graph.num_nodes}; "
                "fit this graph on its own"
            )
        # Differs from word2vec: the frequencies are the expected ones of walks without memory, not counts.
        sums = np.cumsum(expected_visits(graph, self.walk_length) ** NOISE_POWER)
        noise = torch.from_numpy(sums / sums[-1]).to(device=device, dtype=precision(device))
        return WalkPrepared(GraphTensors.of(graph, device), paths=WalkGraph.of(graph, device), noise=noise)

    def loss(self, prepared: Prepared, step: int, generator: torch.Generator, walk: Walk) -> Tensor:
        """Mean over the pairs of this step's walks."""
        assert isinstance(prepared, WalkPrepared)
        walks = self._walks(prepared, step, generator, walk)
        # No pair is further apart than a walk is long.
        shape = (len(walks), self.negatives * min(self.window, self.walk_length - 1))
        draws = torch.rand(
            shape, generator=generator, dtype=prepared.noise.dtype, device=prepared.noise.device
        )
        noise = torch.searchsorted(prepared.noise, draws, right=True)
        # Without a single pair, on isolated nodes alone, the sum is 0 as well.
        pairs = sum_of_weights(walks != ENDED, self.window).clamp(min=1)
        if len(walks) <= WALKS_A_BLOCK:
            return self._sum(self.centres, self.contexts, walks, noise) / pairs
        total = torch.zeros((), device=walks.device)
        for start in range(0, len(walks), WALKS_A_BLOCK):
            block = slice(start, start + WALKS_A_BLOCK)
            total = total + apply(
                _Recomputed, self._sum, self.centres, self.contexts, walks[block], noise[block]
            )
        return total / pairs

    def vectors(self) -> Tensor:
        """The centres."""
        return self.centres.detach().clone()

    def _walks(self, prepared: WalkPrepared, step: int, generator: torch.Generator, walk: Walk) -> Tensor:
        """The walks of a step; those of several steps are drawn together and remembered."""
        batch = math.ceil(len(self.order) * self.walks / self.steps)
        shared = max(1, WALKS_A_DRAW // batch)
        place = step % shared
        if not place or "walks" not in prepared.memory:
            first, last = step - place, min(step - place + shared, self.steps)
            turns = torch.arange(first * batch, last * batch, device=self.order.device)
            starts = self.order[turns % len(self.order)]
            prepared.memory["walks"] = walk(prepared.paths, starts, generator)
        return prepared.memory["walks"][place * batch : (place + 1) * batch]

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


class WalkMethod(Method):
    """What DeepWalk and node2vec share; they differ in the bias of their walks."""

    inductive = False
    reads_features = False

    def __init__(
        self,
        skip_gram: SkipGram,
        *,
        learning_rate: float,
        weight_decay: float,
        p: float = 1.0,
        q: float = 1.0,
    ) -> None:
        super().__init__()
        self.skip_gram, self.p, self.q = skip_gram, p, q
        self.steps, self.learning_rate, self.weight_decay = skip_gram.steps, learning_rate, weight_decay

    def allocate(self, num_nodes: int) -> None:
        """Two vectors per node."""
        self.skip_gram.allocate(num_nodes)

    def prepare(self, graph: Graph, device: torch.device, supervision: Any = None) -> WalkPrepared:
        """Copy the edges and sum up the noise distribution."""
        return self.skip_gram.prepare(graph, device)

    def loss(self, prepared: Prepared, step: int, generator: torch.Generator) -> Tensor:
        """Skip-gram over this step's walks."""
        return self.skip_gram.loss(prepared, step, generator, self._walk)

    def learning_rate_at(self, step: int) -> float:
        """Falls linearly, to 0 after the last step, as in word2vec."""
        return self.learning_rate * (1 - step / self.steps)

    def embed(self, prepared: Prepared) -> Tensor:
        """The vectors of the nodes as centres."""
        return self.skip_gram.vectors()

    def _walk(self, graph: WalkGraph, starts: Tensor, generator: torch.Generator) -> Tensor:
        length = self.skip_gram.walk_length
        return random_walks(
            graph, starts, length, generator, return_parameter=self.p, in_out_parameter=self.q
        )


def sum_of_weights(present: Tensor, window: int) -> Tensor:
    """What `pair_weights` adds up to for walks that, once ended, stay so."""
    distances = range(1, min(window + 1, present.shape[1]))
    counts = torch.stack([present[:, distance:].sum() for distance in distances])
    shares = [2 * (window + 1 - distance) / window for distance in distances]
    return (counts * torch.tensor(shares, device=present.device)).sum()


class _Recomputed(torch.autograd.Function):
    """A sum over walks whose gradient computes it a second time, instead of keeping what it is made of.

    Torch's own way imports its compiler, which takes seconds, and leaves cycles of garbage.
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
