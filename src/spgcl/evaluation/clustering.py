"""How well clusters of the embeddings match the classes: k-means, with all restarts computed together."""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spgcl.engine.similarity import squared_lengths, unit_rows
from spgcl.evaluation.checks import checked_classes, comparable_embeddings
from spgcl.evaluation.metrics import adjusted_rand_index, normalised_mutual_information

_RESTARTS = 3
_ITERATIONS = 300
# Iterations end when centres move by less than this fraction of the rows' mean variance.
_TOLERANCE = 1e-4
_BLOCK_ENTRIES = 2**24


def cluster(
    embeddings: Any, labels: Any, *, seed: int = 0, device: str | torch.device = "cpu"
) -> dict[str, float]:
    """Agreement of k-means with the classes, in percent: `nmi` and `ari` (adjusted for chance).

    There are as many clusters as classes, rows are divided by their L2 norm, and the best of three seeded
    restarts by the k-means objective counts. Nodes without a label are clustered but not compared.

    Args:
        embeddings: One row per node.
        labels: One class per node, 0 to classes - 1; negative if unknown.
        seed: Decides the restarts.
        device: Where to compute.
    """
    vectors = comparable_embeddings(embeddings)
    values, _ = checked_classes(labels, len(vectors))
    labelled = values >= 0
    present, classes = np.unique(values[labelled], return_inverse=True)
    rows = unit_rows(torch.from_numpy(vectors).to(device))
    found = k_means(rows, len(present), restarts=_RESTARTS, seed=seed).cpu()[torch.from_numpy(labelled)]
    compared = torch.from_numpy(classes), found
    return {
        "nmi": 100 * normalised_mutual_information(*compared),
        "ari": 100 * adjusted_rand_index(*compared),
    }


def k_means(rows: Tensor, clusters: int, *, restarts: int, seed: int) -> Tensor:
    """Cluster of every row, from the restart of Lloyd's algorithm with the least squared distances.

    Args:
        rows: Shape (rows, width).
        clusters: How many clusters; at most as many as rows.
        restarts: How often the first centres are drawn, by greedy k-means++.
        seed: Decides the draws.
    """
    # Centred rows avoid cancellation in the squared distances.
    rows = rows - rows.mean(dim=0)
    lengths = squared_lengths(rows)
    tolerance = _TOLERANCE * float(lengths.mean()) / rows.shape[1]
    # Centres are few: operations on centres alone run on the CPU.
    centres = _first_centres(rows, lengths, clusters, restarts, seed).cpu()
    for _ in range(_ITERATIONS):
        before, centres = centres, _moved(rows, lengths, centres)
        if bool(((centres - before).square().sum(dim=(1, 2)) <= tolerance).all()):
            break
    distances, nearest = _nearest(rows, centres)
    return nearest[:, distances.sum(dim=0).argmin()]


def _first_centres(rows: Tensor, lengths: Tensor, clusters: int, restarts: int, seed: int) -> Tensor:
    """Rows far from one another, shape (restarts, clusters, width).

    Greedy k-means++: a few rows are drawn with probabilities proportional to the squared distance to the
    nearest centre so far, and the one that most reduces the sum of these distances is kept.
    """
    trials = 2 + int(math.log(clusters))
    # Drawn on the CPU, so that every device gets the same numbers.
    generator = torch.Generator().manual_seed(seed)
    first = torch.randint(len(rows), (restarts, 1), generator=generator).to(rows.device)
    draws = torch.rand(clusters - 1, restarts, trials, generator=generator).to(rows.device)
    chosen, closest = [first], _distances(rows, lengths, first).squeeze(1)
    for draw in draws:
        sums = closest.cumsum(dim=1)
        drawn = torch.searchsorted(sums, draw * sums[:, -1:], right=True).clamp_(max=len(rows) - 1)
        closer = torch.minimum(closest[:, None], _distances(rows, lengths, drawn))
        best = closer.sum(dim=2).argmin(dim=1, keepdim=True)
        chosen.append(drawn.gather(1, best))
        closest = closer.gather(1, best[..., None].expand(-1, -1, len(rows))).squeeze(1)
    return rows[torch.cat(chosen, dim=1)]


def _distances(rows: Tensor, lengths: Tensor, chosen: Tensor) -> Tensor:
    """Squared distances of all rows to some of them, shape (*chosen, rows)."""
    flat = chosen.flatten()
    distances = torch.addmm(lengths[:, None] + lengths[flat], rows, rows[flat].T, alpha=-2)
    return distances.clamp_(min=0).T.reshape(*chosen.shape, len(rows))


def _nearest(rows: Tensor, centres: Tensor) -> tuple[Tensor, Tensor]:
    """The nearest centre of every row, after half its squared distance without half the squared row.

    Both have shape (rows, restarts). The centres, of shape (restarts, clusters, width), are on the CPU.
    """
    flat = centres.flatten(0, 1)
    offsets, columns = (flat.square().sum(dim=1) / 2).to(rows.device), flat.to(rows.device).T
    parts = [
        torch.addmm(offsets, block, columns, alpha=-1).view(-1, *centres.shape[:2]).min(dim=2)
        for block in torch.split(rows, max(1, _BLOCK_ENTRIES // len(offsets)))
    ]
    return torch.cat([part.values for part in parts]), torch.cat([part.indices for part in parts])


def _moved(rows: Tensor, lengths: Tensor, centres: Tensor) -> Tensor:
    """Means of the rows nearest to each centre, on the CPU like the centres.

    A centre without rows moves to the row that is farthest from its own centre.
    """
    restarts, clusters, width = centres.shape
    distances, nearest = _nearest(rows, centres)
    sums, counts = rows.new_zeros(restarts * clusters, width), rows.new_zeros(restarts, clusters)
    size = max(1, _BLOCK_ENTRIES // (restarts * clusters))
    for block, members in zip(torch.split(rows, size), torch.split(nearest, size), strict=True):
        inside = block.new_zeros(len(block), restarts, clusters).scatter_(2, members[..., None], 1)
        sums.addmm_(inside.flatten(1).T, block)
        counts += inside.sum(dim=0)
    sums, counts = sums.cpu().view_as(centres), counts.cpu()[..., None]
    empties = (counts.squeeze(2) == 0).nonzero().tolist()
    if empties:
        distances += lengths[:, None] / 2
    for restart, empty in empties:
        row = int(distances[:, restart].argmax())
        giver, vector = int(nearest[row, restart]), rows[row].cpu()
        sums[restart, giver] -= vector
        counts[restart, giver] -= 1
        sums[restart, empty], counts[restart, empty] = vector, 1
        distances[row, restart] = 0
    return torch.where(counts > 0, sums / counts.clamp(min=1), centres)
