"""Graph diffusion: personalised PageRank and the heat kernel, all entries or the largest of every row."""

import math

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from spgcl.engine.tensors import SparseMatrix
from spgcl.errors import InputError
from spgcl.graph import Graph
from spgcl.graph.propagate import normalised_adjacency

# Nodes up to which all entries are kept, of which nearly none are zero.
EXACT_UP_TO = 5000
CPU = torch.device("cpu")
# What may be missing from a row's sum: less than float32 resolves, or far less than is cut off anyway.
_TAIL, _TAIL_BEFORE_CUT = 1e-7, 1e-3
# Thresholds of `sharpened`.
_CUTS = (1e-5, 1e-4, 1e-3, 1e-2)
# Numbers in a block of rows, 64 MiB of float32.
_BLOCK_NUMBERS = 2**24


def personalised_pagerank(
    graph: Graph, *, restart: float, keep: int, device: torch.device = CPU
) -> sparse.csr_array:
    """Personalised PageRank, restart (I - (1 - restart) S)^-1 with S the normalised adjacency with loops.

    Row i is the distribution of a walk from node i that restarts with probability `restart` at every step:
    exactly for a directed graph, whose rows of S sum to one, and up to degrees for an undirected one.

    Args:
        graph: The graph; its weights count, if it has any.
        restart: Probability of a restart (alpha), 0.01 to 1.
        keep: Largest entries kept in every row; 0 keeps all and needs a graph of at most 5,000 nodes.
        device: Where to compute.
    """
    weights, left = [restart], 1 - restart
    while left > _tail(keep):
        weights.append(weights[-1] * (1 - restart))
        left *= 1 - restart
    return _series(normalised_adjacency(graph), weights, keep, device)


def heat(graph: Graph, *, time: float, keep: int, device: torch.device = CPU) -> sparse.csr_array:
    """The heat kernel, exp(time (T - I)) with T = (A + I) D^-1, whose columns sum to one.

    The time (t) is 0 to 100; see `personalised_pagerank` for the other arguments.
    """
    looped = (graph.adjacency + sparse.eye_array(graph.num_nodes, dtype=np.float32)).tocsr()
    degrees = looped.sum(axis=0, dtype=np.float64)
    transition = (looped @ sparse.diags_array(1 / degrees)).astype(np.float32).tocsr()
    weights = [math.exp(-time)]
    left = -math.expm1(-time)
    # Terms grow until `time`; until then the rest is not small.
    while left > _tail(keep) or len(weights) <= time:
        weights.append(weights[-1] * time / len(weights))
        left -= weights[-1]
    return _series(transition, weights, keep, device)


def sharpened(matrix: sparse.csr_array, graph: Graph) -> sparse.csr_array:
    """A diffusion without its small entries, every column divided by its largest one.

    Of a few thresholds, it takes the one that leaves nodes, on average, about as many entries as neighbours.
    """
    degree = graph.adjacency.nnz / graph.num_nodes
    cut = min(_CUTS, key=lambda cut: abs(np.count_nonzero(matrix.data >= cut) / graph.num_nodes - degree))
    kept = matrix.copy()
    kept.data[kept.data < cut] = 0
    kept.eliminate_zeros()
    largest = kept.max(axis=0).toarray()
    kept.data /= largest[kept.indices]
    return kept


def _tail(keep: int) -> float:
    return _TAIL_BEFORE_CUT if keep else _TAIL


@torch.no_grad()
def _series(
    matrix: sparse.csr_array, weights: list[float], keep: int, device: torch.device
) -> sparse.csr_array:
    """The sum of weights[k] matrix^k, in blocks of rows, so that N x N is never in memory."""
    num_nodes = matrix.shape[0]
    if num_nodes > EXACT_UP_TO and (not keep or keep >= num_nodes):
        raise InputError(
            f"all entries of a diffusion over {num_nodes:,} nodes take {8 * num_nodes**2:,} bytes; "
            "keep the largest of every row (keep)"
        )
    # A row of a power of the matrix is a column of that power of its transpose.
    transposed = SparseMatrix.of(matrix.T.tocsr(), device)
    size = max(1, _BLOCK_NUMBERS // num_nodes)
    parts = []
    for start in range(0, num_nodes, size):
        width = min(size, num_nodes - start)
        current = torch.zeros(num_nodes, width, device=device)
        current[torch.arange(start, start + width), torch.arange(width)] = 1
        total = weights[0] * current
        for weight in weights[1:]:
            current = transposed @ current
            total.add_(current, alpha=weight)
        parts.append(_largest(total.T, keep))
    return sparse.csr_array(sparse.vstack(parts, format="csr"))


def _largest(rows: Tensor, keep: int) -> sparse.csr_array:
    """The `keep` largest entries of every row (all when 0), in order of their columns, zeros left out."""
    if not keep or keep >= rows.shape[1]:
        return sparse.csr_array(rows.cpu().numpy())
    values, columns = rows.topk(keep, dim=1)
    columns, order = columns.sort(dim=1)
    pointers = np.arange(0, values.numel() + 1, keep, dtype=np.int32)
    values, columns = values.gather(1, order).cpu(), columns.int().cpu()
    kept = sparse.csr_array(
        (values.numpy().reshape(-1), columns.numpy().reshape(-1), pointers), shape=tuple(rows.shape)
    )
    kept.eliminate_zeros()
    return kept
