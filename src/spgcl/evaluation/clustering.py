"""How far clusters of the embeddings are the classes: k-means, all its starts at once."""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spgcl.engine.similarity import squared_lengths, unit_rows
from spgcl.evaluation.checks import checked_classes, comparable_embeddings
from spgcl.evaluation.metrics import adjusted_rand_index, normalised_mutual_information

_STARTS = 3
_ITERATIONS = 300
# Centres that move by less than this share of the rows' mean variance have arrived.
_TOLERANCE = 1e-4
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
    vectors = comparable_embeddings(embeddings)
    values, _ = checked_classes(labels, len(vectors))
    labelled = values >= 0
    rows = unit_rows(torch.from_numpy(vectors).to(device))
    present, classes = np.unique(values[labelled], return_inverse=True)
    found = k_means(rows, len(present), starts=_STARTS, seed=seed)
    compared = torch.from_numpy(classes), found.cpu()[torch.from_numpy(labelled)]
    return {
        "nmi": 100 * normalised_mutual_information(*compared),
        "ari": 100 * adjusted_rand_index(*compared),
    }


def k_means(rows: Tensor, clusters: int, *, starts: int, seed: int) -> Tensor:
    """Cluster of every row, by the start of Lloyd's algorithm that ends with the least squared distances.

    It is over when the centres of all starts hardly move.

    Args:
        rows: Shape (rows, width).
        clusters: How many clusters; no more than rows.
        starts: Choices of first centres by greedy k-means++.
        seed: Decides the choices.
    """
    # Distances are the differences of large numbers unless the rows lie around zero.
    rows = rows - rows.mean(dim=0)
    lengths = squared_lengths(rows)
    tolerance = _TOLERANCE * float(lengths.mean()) / rows.shape[1]
    # Centres are few: what is done with them alone is done on the host.
    centres = _first_centres(rows, lengths, clusters, starts, seed).cpu()
    for _ in range(_ITERATIONS):
        before, centres = centres, _moved(rows, lengths, centres)
        if bool(((centres - before).square().sum(dim=(1, 2)) <= tolerance).all()):
            break
    distances, nearest = _nearest(rows, centres)
    return nearest[:, distances.sum(dim=0).argmin()]


def _first_centres(rows: Tensor, lengths: Tensor, clusters: int, starts: int, seed: int) -> Tensor:
    """Rows far from one another, shape (starts, clusters, width).

    Greedy k-means++: a few rows are drawn by their squared distance to the nearest centre so far, and the
    one that brings all rows closest to a centre is kept.
    """
    trials = 2 + int(math.log(clusters))
    # Drawn on the host, hence the same on every device.
    generator = torch.Generator().manual_seed(seed)
    first = torch.randint(len(rows), (starts, 1), generator=generator).to(rows.device)
    chances = torch.rand(clusters - 1, starts, trials, generator=generator).to(rows.device)
    chosen, closest = [first], _distances(rows, lengths, first).squeeze(1)
    for chance in chances:
        sums = closest.cumsum(dim=1)
        drawn = torch.searchsorted(sums, chance * sums[:, -1:], right=True).clamp_(max=len(rows) - 1)
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
    """Half the squared distance to the nearest centre less half the squared row, and which centre it is.

    Both have shape (rows, starts); the centres have shape (starts, clusters, width) and are on the host.
    """
    flat = centres.flatten(0, 1)
    halves, columns = (flat.square().sum(dim=1) / 2).to(rows.device), flat.to(rows.device).T
    parts = [
        torch.addmm(halves, block, columns, alpha=-1).view(-1, *centres.shape[:2]).min(dim=2)
        for block in torch.split(rows, max(1, _BLOCK_ENTRIES // len(halves)))
    ]
    return torch.cat([part.values for part in parts]), torch.cat([part.indices for part in parts])


def _moved(rows: Tensor, lengths: Tensor, centres: Tensor) -> Tensor:
    """Means of the rows nearest to each centre, on the host as the centres are.

    A centre without rows moves to the row that is farthest from its own centre.
    """
    starts, clusters, width = centres.shape
    distances, nearest = _nearest(rows, centres)
    sums, counts = rows.new_zeros(starts * clusters, width), rows.new_zeros(starts, clusters)
    size = max(1, _BLOCK_ENTRIES // (starts * clusters))
    for block, members in zip(torch.split(rows, size), torch.split(nearest, size), strict=True):
        inside = block.new_zeros(len(block), starts, clusters).scatter_(2, members[..., None], 1)
        sums.addmm_(inside.flatten(1).T, block)
        counts += inside.sum(dim=0)
    sums, counts = sums.cpu().view_as(centres), counts.cpu()[..., None]
    empties = (counts.squeeze(2) == 0).nonzero().tolist()
    if empties:
        distances += lengths[:, None] / 2
    for start, empty in empties:
        row = int(distances[:, start].argmax())
        giver, vector = int(nearest[row, start]), rows[row].cpu()
        sums[start, giver] -= vector
        counts[start, giver] -= 1
        sums[start, empty], counts[start, empty] = vector, 1
        distances[row, start] = 0
    return torch.where(counts > 0, sums / counts.clamp(min=1), centres)
