"""Nearest neighbours by cosine similarity: the k-NN classifier and the search for similar nodes."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spgcl.datasets.dataset import Splits
from spgcl.engine.similarity import comparable_rows, nearest_rows, squared_lengths, unit_rows
from spgcl.errors import InputError
from spgcl.evaluation.checks import checked_task, comparable_embeddings
from spgcl.evaluation.metrics import MEASURES
from spgcl.evaluation.scores import Scores, SplitScore
from spgcl.evaluation.stacking import nodes_of


def knn(
    embeddings: Any,
    labels: Any,
    splits: Splits,
    *,
    neighbours: int = 10,
    metric: str = "accuracy",
    device: str | torch.device = "cpu",
) -> Scores:
    """Score embeddings by the vote of each node's most cosine-similar training nodes.

    The class with most votes wins; summed similarity breaks ties. Nothing is chosen on the validation part.
    With fewer training nodes than `neighbours`, all of them vote.

    Args:
        embeddings: One row per node.
        labels: One class per node, 0 to classes - 1.
        splits: Training, validation and test nodes.
        neighbours: How many training nodes vote.
        metric: "accuracy", or "roc_auc" for two classes.
        device: Where to compute.
    """
    vectors, classes, num_classes = checked_task(embeddings, labels, splits, metric, device)
    if neighbours < 1:
        raise InputError(f"neighbours is {neighbours}; at least one has to vote")
    rows = unit_rows(comparable_rows(vectors))
    found = []
    for split in range(len(splits)):
        voters = nodes_of(splits.train[split], device)
        parts = [nodes_of(masks[split], device) for masks in (splits.validation, splits.test)]
        votes = _votes(rows, torch.cat(parts), voters, classes, num_classes, neighbours)
        for nodes, counts in zip(parts, torch.split(votes, list(map(len, parts))), strict=True):
            found.append(MEASURES[metric](counts[None, :, None], classes[nodes][None]))
    # Read only after the last split, so that a GPU does not wait between splits.
    scores = (100 * torch.cat(found)).view(len(splits), 2).tolist()
    records = [SplitScore(split, 0, *pair) for split, pair in enumerate(scores)]
    return Scores.of(records, metric=metric, protocol=f"{neighbours}-nearest neighbours")


def _votes(
    rows: Tensor, nodes: Tensor, voters: Tensor, classes: Tensor, num_classes: int, neighbours: int
) -> Tensor:
    """Votes per class, shape (nodes, classes); the summed similarity is added as less than one vote."""
    similarities, near = nearest_rows(rows, nodes, neighbours, candidates=voters)
    # Sums of similarities lie within +-count, so they decide only between equal votes.
    weights = 1 + similarities.double() / (2 * near.shape[1] + 1)
    votes = torch.zeros(len(nodes), num_classes, dtype=torch.float64, device=rows.device)
    return votes.scatter_add_(1, classes[near], weights)


def nearest_nodes(
    embeddings: Any, count: int, device: str | torch.device = "cpu"
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The `count` most cosine-similar other nodes of every node, most similar first, and their similarities.

    With fewer other nodes, all are returned.
    """
    rows = unit_rows(torch.from_numpy(comparable_embeddings(embeddings)).to(device))
    similarities, nodes = nearest_rows(rows, torch.arange(len(rows), device=rows.device), count)
    return nodes.cpu().numpy(), similarities.clamp(-1, 1).cpu().numpy()


def most_similar(embeddings: Any, row: int, count: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The `count` other rows most cosine-similar to one row, most similar first, and their similarities.

    Equally similar rows come in row order. With fewer other rows, all are returned.
    """
    vectors = torch.from_numpy(comparable_embeddings(embeddings))
    if not 0 <= row < len(vectors):
        raise InputError(f"row {row} is not among the {len(vectors)} embeddings")
    if count < 1:
        raise InputError(f"count is {count}; ask for at least one similar node")
    lengths = squared_lengths(vectors).sqrt()
    similarities = (
        vectors @ vectors[row] / (lengths * lengths[row]).clamp(min=torch.finfo(torch.float32).tiny)
    )
    order = similarities.argsort(descending=True, stable=True)
    rows = order[order != row][:count]
    return rows.numpy(), similarities[rows].clamp(-1, 1).numpy()
