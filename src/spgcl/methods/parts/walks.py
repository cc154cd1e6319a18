"""Random walks on compressed sparse rows; all walkers move together."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from spgcl.engine.device import sum_type
from spgcl.graph import Graph
from spgcl.graph.propagate import inverse

# After this many rejected proposals a walker's next node is drawn from a list of all neighbours.
PROPOSALS = 16
ENDED = -1


@dataclass(frozen=True, eq=False)
class WalkGraph:
    """The edges of a graph on a device, without self loops.

    Attributes:
        rows: Row pointers, shape (num_nodes + 1,).
        columns: Neighbours, ascending within a row.
        keys: Row times num_nodes plus column of every entry, ascending, to look up edges.
        sums: Running sum of the edge weights from 0, those of a row divided by their sum to keep precision;
            one longer than `columns`; None for weights of 1.
    """

    rows: Tensor
    columns: Tensor
    keys: Tensor
    sums: Tensor | None = None

    @classmethod
    def of(cls, graph: Graph, device: torch.device) -> "WalkGraph":
        """Copy a graph's edges to a device."""
        rows = torch.as_tensor(graph.rows.astype(np.int64), device=device)
        columns = torch.as_tensor(graph.columns.astype(np.int64), device=device)
        sources = torch.arange(graph.num_nodes, device=device).repeat_interleave(rows.diff())
        sums = None
        if graph.weights is not None:
            weights = graph.weights.astype(np.float64)
            counts = np.diff(graph.rows)
            row_sums = np.add.reduceat(weights, graph.rows[:-1][counts > 0])
            running = np.concatenate([[0.0], np.cumsum(weights / np.repeat(row_sums, counts[counts > 0]))])
            sums = torch.from_numpy(running).to(device=device, dtype=sum_type(device))
        return cls(rows, columns, sources * graph.num_nodes + columns, sums)

    @property
    def num_nodes(self) -> int:
        """How many nodes."""
        return len(self.rows) - 1

    @property
    def device(self) -> torch.device:
        """Where the tensors are."""
        return self.columns.device

    def has_edge(self, sources: Tensor, targets: Tensor) -> Tensor:
        """Whether there is an edge from each source to its target."""
        return self._lookup(sources, targets)[1]

    def weight(self, sources: Tensor, targets: Tensor) -> Tensor:
        """Weight of the edge from each source to its target, 0 if there is none; to compare within a row."""
        entries, found = self._lookup(sources, targets)
        return found.float() if self.sums is None else self.entry_weights(entries) * found

    def strength(self, nodes: Tensor) -> Tensor:
        """Sum of the weights of a node's edges, in the unit of `weight`."""
        starts, ends = self.rows[nodes], self.rows[nodes + 1]
        return (ends - starts).float() if self.sums is None else self.sums[ends] - self.sums[starts]

    def entry_weights(self, entries: Tensor) -> Tensor:
        """Weight of every given entry."""
        if self.sums is None:
            return torch.ones(entries.shape, device=self.device)
        return self.sums[entries + 1] - self.sums[entries]

    def _lookup(self, sources: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        wanted = sources * self.num_nodes + targets
        entries = torch.searchsorted(self.keys, wanted).clamp_(max=len(self.keys) - 1)
        return entries, self.keys[entries] == wanted


def random_walks(
    graph: WalkGraph,
    starts: Tensor,
    length: int,
    generator: torch.Generator,
    *,
    p: float = 1.0,
    q: float = 1.0,
) -> Tensor:
    """Walks of `length` nodes from the given ones, shape (starts, length); ENDED follows a dead end.

    The next node is drawn by edge weight times the search bias of node2vec: 1 / p for the node before, 1 for
    its neighbours, 1 / q for all others. With 1 and 1 the walk has no memory, as in DeepWalk.
    """
    biased = p != 1 or q != 1
    walks = torch.full((len(starts), length), ENDED, device=graph.device)
    walks[:, 0] = starts
    walkers = torch.arange(len(starts), device=graph.device)
    current, before = starts, starts
    for position in range(1, length):
        going = graph.rows[current + 1] > graph.rows[current]
        if not going.all():
            walkers, current, before = walkers[going], current[going], before[going]
        if biased and position > 1:
            following = biased_neighbours(graph, before, current, p, q, generator)
        else:
            following = random_neighbours(graph, current, generator)
        walks[walkers, position] = following
        current, before = following, current
    return walks


def random_neighbours(graph: WalkGraph, nodes: Tensor, generator: torch.Generator) -> Tensor:
    """A neighbour of every node, drawn by edge weight; every node needs one."""
    starts, ends = graph.rows[nodes], graph.rows[nodes + 1]
    if graph.sums is None:
        draws = torch.rand(nodes.shape, generator=generator, device=graph.device)
        counts = ends - starts
        return graph.columns[starts + torch.minimum((draws * counts).long(), counts - 1)]
    return graph.columns[_drawn(graph.sums, starts, ends, generator)]


def biased_neighbours(
    graph: WalkGraph, before: Tensor, current: Tensor, p: float, q: float, generator: torch.Generator
) -> Tensor:
    """A neighbour of every current node by node2vec's second-order distribution, given the node before.

    Rejection sampling: a neighbour drawn by edge weight is accepted with a probability proportional to its
    bias. If going back has the largest bias, its surplus over the others is drawn first, as otherwise almost
    all other proposals would be rejected.
    """
    ceiling = max(1.0, 1 / q)
    surplus = max(0.0, 1 / p - ceiling)
    back = surplus * graph.weight(current, before) if surplus else torch.zeros((), device=graph.device)
    going_back = (back / (back + ceiling * graph.strength(current))).expand(len(current))
    chosen = torch.empty_like(current)
    waiting = torch.arange(len(current), device=graph.device)
    for _ in range(PROPOSALS):
        came_from = before[waiting]
        proposed = random_neighbours(graph, current[waiting], generator)
        draws = torch.rand((2, len(waiting)), generator=generator, device=graph.device)
        returned = draws[0] < going_back[waiting]
        accepted = returned | _accepted(graph, came_from, proposed, draws[1] * ceiling, p, q)
        chosen[waiting[accepted]] = torch.where(returned, came_from, proposed)[accepted]
        waiting = waiting[~accepted]
        if not len(waiting):
            return chosen
    chosen[waiting] = _listed_neighbours(graph, before[waiting], current[waiting], p, q, generator)
    return chosen


def _accepted(
    graph: WalkGraph, before: Tensor, proposed: Tensor, draws: Tensor, p: float, q: float
) -> Tensor:
    """Whether a draw is below the bias of a proposed node; edges are looked up only if needed."""
    backward = proposed == before
    accepted = torch.where(backward, draws < 1 / p, draws < min(1.0, 1 / q))
    open_ = (~backward & ~accepted & (draws < max(1.0, 1 / q))).nonzero().reshape(-1)
    near = graph.has_edge(before[open_], proposed[open_])
    accepted[open_] = near if q > 1 else ~near
    return accepted


def _listed_neighbours(
    graph: WalkGraph, before: Tensor, current: Tensor, p: float, q: float, generator: torch.Generator
) -> Tensor:
    """The same distribution, drawn from a list of all neighbours of every current node."""
    starts, counts = graph.rows[current], graph.rows[current + 1] - graph.rows[current]
    ends = counts.cumsum(0)
    owners = torch.arange(len(current), device=graph.device).repeat_interleave(counts)
    entries = torch.arange(len(owners), device=graph.device) + (starts - ends + counts)[owners]
    candidates, came_from = graph.columns[entries], before[owners]
    bias = torch.where(graph.has_edge(came_from, candidates), 1.0, 1 / q)
    bias = torch.where(candidates == came_from, 1 / p, bias) * graph.entry_weights(entries)
    sums = torch.cat([bias.new_zeros(1), bias]).cumsum(0, dtype=sum_type(graph.device))
    return candidates[_drawn(sums, ends - counts, ends, generator)]


def _drawn(sums: Tensor, starts: Tensor, ends: Tensor, generator: torch.Generator) -> Tensor:
    """One entry between each start and end, drawn by weight, where `sums` are running sums of weights."""
    draws = torch.rand(starts.shape, generator=generator, dtype=sums.dtype, device=sums.device)
    wanted = sums[starts] + draws * (sums[ends] - sums[starts])
    # Rounding may move a draw beyond its row.
    return torch.clamp(torch.searchsorted(sums, wanted, right=True) - 1, starts, ends - 1)


def expected_visits(graph: Graph, length: int) -> NDArray[np.float64]:
    """How often unbiased walks of `length` nodes, one from every node, are expected to visit each node."""
    return np.asarray(sum(arrivals(graph.adjacency, length - 1)), dtype=np.float64)


def arrivals(adjacency: sparse.csr_array, steps: int) -> Iterator[NDArray[np.float64]]:
    """Expected number of unbiased walks, one from every node, at each node after 0 ... `steps` steps."""
    scale = inverse(adjacency.sum(axis=1, dtype=np.float64))
    backward = adjacency.T.tocsr()
    current = np.ones(adjacency.shape[0])
    yield current
    for _ in range(steps):
        current = backward @ (scale * current)
        yield current
