"""How far clusters of the embeddings are the classes: k-means, all its starts at once."""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spgcl.evaluation.checks import checked_classes, checked_embeddings
from spgcl.evaluation.metrics import adjusted_rand_index, normalised_mutual_information

_STARTS = 3
_ITERATIONS = 300
# Centres that move by less than this share of the rows' mean variance have arrived.
_TOLERANCE = 1e-4
# To look at the centres makes a CUDA device wait, so there it is done once in a few iterations.
_CUDA_LOOKS = 8
_BLOCK_ENTRIES = 2**24


def cluster(
    embeddings: Any, labels: Any, *, seed: int = 0, device: str | torch.device = "cpu"
) -> dict[str, float]:
    """Agreement of k-means with the classes, in percent: `nmi` and `ari` (adjusted for chance).

    There are as many clusters as classes, rows are divided by their L2 norm, and the best of three seeded
    starts by the k-means objective counts. Nodes without a label are clustered but not compared.

    Args:
        embeddings: One row a node.
        labels: One class a node, 0 to classes - 1; negative where it is not known.
        seed: Decides the starts.
        device: Where to compute.
    """
    vectors = checked_embeddings(embeddings)
    values, _ = checked_classes(labels, len(vectors))
    labelled = values >= 0
    rows = torch.from_numpy(vectors).to(device)
    rows = torch.nn.functional.normalize(rows, eps=torch.finfo(rows.dtype).tiny)
    present, classes = np.unique(values[labelled], return_inverse=True)
    found = k_means(rows, len(present), starts=_STARTS, seed=seed)
    compared = torch.from_numpy(classes), found.cpu()[torch.from_numpy(labelled)]
    return {
        "nmi": 100 * normalised_mutual_information(*compared),
        "ari": 100 * adjusted_rand_index(*compared),
    }


def k_means(rows: Tensor, clusters: int, *, starts: int, seed: int) -> Tensor:
    """Cluster of every row, by the start of Lloyd's algorithm that ends with the least squared distances.

    A start is over when no row changes its cluster or its centres hardly move; it goes on while others do.

    Args:
        rows: Shape (rows, width).
        clusters: How many clusters; no more than rows.
        starts: Choices of first centres by greedy k-means++.
        seed: Decides the choices.
    """
    # Distances are the differences of large numbers unless the rows lie around zero.
    rows = rows - rows.mean(dim=0)
    centres = _first_centres(rows, clusters, starts, seed)
    tolerance = _TOLERANCE * _lengths(rows).mean() / rows.shape[1]
    looks = _CUDA_LOOKS if rows.is_cuda else 1
    before = None
    for iteration in range(1, _ITERATIONS + 1):
        looking = iteration % looks == 0
        moved, nearest = _moved(rows, centres, fill_empty=looking)
        if looking and before is not None:
            shifts = (moved - centres).square().sum(dim=(1, 2))
            if bool(((shifts <= tolerance) | (nearest == before).all(dim=0)).all()):
                break
        centres, before = moved, nearest
    distances, nearest = _nearest(rows, moved)
    return nearest[:, distances.sum(dim=0).argmin()]


def _first_centres(rows: Tensor, clusters: int, starts: int, seed: int) -> Tensor:
    """Rows far from one another, shape (starts, clusters, width).

    Greedy k-means++: a few rows are drawn by their squared distance to the nearest centre so far, and the
    one that brings all rows closest to a centre is kept.
    """
    trials = 2 + int(math.log(clusters))
    # Drawn on the host, hence the same on every device.
    generator = torch.Generator().manual_seed(seed)
    first = torch.randint(len(rows), (starts, 1), generator=generator).to(rows.device)
    chances = torch.rand(clusters - 1, starts, trials, generator=generator).to(rows.device)
    lengths = _lengths(rows)
    chosen, closest = [first], _distances(rows, lengths, first).squeeze(1)
    for chance in chances:
        sums = closest.cumsum(dim=1)
        drawn = torch.searchsorted(sums, chance * sums[:, -1:], right=True).clamp_(max=len(rows) - 1)
        closer = torch.minimum(closest[:, None], _distances(rows, lengths, drawn))
        best = closer.sum(dim=2).argmin(dim=1, keepdim=True)
        chosen.append(drawn.gather(1, best))
        closest = closer.gather(1, best[..., None].expand(-1, -1, len(rows))).squeeze(1)
    return rows[torch.cat(chosen, dim=1)]


def _lengths(rows: Tensor) -> Tensor:
    """Squared lengths of all rows, without a copy of them."""
    lengths: Tensor = torch.linalg.vector_norm(rows, dim=1)
    return lengths.square()


def _distances(rows: Tensor, lengths: Tensor, chosen: Tensor) -> Tensor:
    """Squared distances of all rows to some of them, shape (*chosen, rows)."""
    flat = chosen.flatten()
    distances = torch.addmm(lengths[:, None] + lengths[flat], rows, rows[flat].T, alpha=-2)
    return distances.clamp_(min=0).T.reshape(*chosen.shape, len(rows))


def _nearest(rows: Tensor, centres: Tensor) -> tuple[Tensor, Tensor]:
    """Half the squared distance to the nearest centre less half the squared row, and which centre it is.

    Both have shape (rows, starts); the centres have shape (starts, clusters, width).
    """
    halves = centres.square().sum(dim=2).flatten() / 2
    parts = [
        torch.addmm(halves, block, centres.flatten(0, 1).T, alpha=-1).view(-1, *centres.shape[:2]).min(dim=2)
        for block in torch.split(rows, max(1, _BLOCK_ENTRIES // len(halves)))
    ]
    return torch.cat([part.values for part in parts]), torch.cat([part.indices for part in parts])


def _moved(rows: Tensor, centres: Tensor, *, fill_empty: bool) -> tuple[Tensor, Tensor]:
    """Means of the rows nearest to each centre, and the nearest centres that these are the means of.

    A centre without rows stays, or moves to the row that is farthest from its own centre.
    """
    starts, clusters, width = centres.shape
    distances, nearest = _nearest(rows, centres)
    sums, counts = torch.zeros_like(centres), centres.new_zeros(starts, clusters, 1)
    size = max(1, _BLOCK_ENTRIES // (starts * clusters))
    for block, members in zip(torch.split(rows, size), torch.split(nearest, size), strict=True):
        inside = block.new_zeros(len(block), starts, clusters).scatter_(2, members[..., None], 1)
        sums.view(-1, width).addmm_(inside.flatten(1).T, block)
        counts += inside.sum(dim=0)[..., None]
    empties = (counts.squeeze(2) == 0).nonzero().tolist() if fill_empty else []
    if empties:
        distances += _lengths(rows)[:, None] / 2
    for start, empty in empties:
        row = int(distances[:, start].argmax())
        giver = nearest[row, start]
        sums[start, giver] -= rows[row]
        counts[start, giver] -= 1
        sums[start, empty], counts[start, empty] = rows[row], 1
        distances[row, start] = 0
    return torch.where(counts > 0, sums / counts.clamp(min=1), centres), nearest
