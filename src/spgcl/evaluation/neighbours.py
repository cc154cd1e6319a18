"""Nearest neighbours by cosine similarity: a classifier without training, and the search behind `similar`."""

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spgcl.errors import InputError
from spgcl.evaluation.checks import checked_embeddings, checked_task
from spgcl.evaluation.metrics import MEASURES
from spgcl.evaluation.scores import Scores, SplitScore
from spgcl.evaluation.stacking import nodes_of

if TYPE_CHECKING:
    from spgcl.datasets.dataset import Splits

_BLOCK_ENTRIES = 2**24


def knn(
    embeddings: Any, labels: Any, splits: "Splits", *, neighbours: int = 10, metric: str = "accuracy"
) -> Scores:
    """Score embeddings by the vote of each node's most cosine-similar training nodes.

    The class with most votes wins; classes with equally many are told apart by their summed similarity.
    Nothing is chosen on the validation part. With fewer training nodes than `neighbours`, all of them vote.
    """
    checked, values, num_classes = checked_task(embeddings, labels, splits, metric)
    if neighbours < 1:
        raise InputError(f"neighbours is {neighbours}; at least one has to vote")
    vectors = torch.nn.functional.normalize(torch.from_numpy(checked))
    classes = torch.from_numpy(values)
    records = []
    for split in range(len(splits)):
        voters = nodes_of(splits.train[split], "cpu")
        scores = {}
        for part in ("validation", "test"):
            nodes = nodes_of(getattr(splits, part)[split], "cpu")
            votes = _votes(vectors, nodes, voters, classes[voters], num_classes, neighbours)
            scores[part] = 100 * float(MEASURES[metric](votes[None, :, None], classes[nodes][None]))
        records.append(SplitScore(split, 0, scores["validation"], scores["test"]))
    return Scores.of(records, metric=metric, protocol=f"{neighbours}-nearest neighbours")


def _votes(
    vectors: Tensor, nodes: Tensor, voters: Tensor, classes: Tensor, num_classes: int, neighbours: int
) -> Tensor:
    """Votes of each class, and below one vote its share of the similarity, shape (nodes, classes)."""
    count = min(neighbours, len(voters))
    references = vectors[voters]
    votes = torch.zeros(len(nodes), num_classes, dtype=torch.float64)
    size = max(1, _BLOCK_ENTRIES // len(voters))
    for start in range(0, len(nodes), size):
        near = (vectors[nodes[start : start + size]] @ references.T).topk(count, dim=1)
        # Sums of similarities lie within +-count, so this part decides only between equal votes.
        shares = 1 + near.values.double() / (2 * count + 1)
        votes[start : start + size].scatter_add_(1, classes[near.indices], shares)
    return votes


def most_similar(embeddings: Any, row: int, count: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The `count` rows most cosine-similar to one row, most similar first, and their similarities.

    The row itself is left out; equally similar rows come in row order. With fewer other rows, all are given.
    """
    vectors = checked_embeddings(embeddings)
    if not 0 <= row < len(vectors):
        raise InputError(f"row {row} is not among the {len(vectors)} embeddings")
    if count < 1:
        raise InputError(f"count is {count}; ask for at least one similar node")
    query = vectors[row]
    similarities = vectors @ query
    norms = np.empty_like(similarities)
    size = max(1, _BLOCK_ENTRIES // vectors.shape[1])
    for start in range(0, len(vectors), size):
        norms[start : start + size] = np.linalg.norm(vectors[start : start + size], axis=1)
    similarities /= np.maximum(norms * norms[row], np.finfo(np.float32).tiny)
    order = np.argsort(-similarities, kind="stable")
    rows = order[order != row][:count]
    return rows, similarities[rows].clip(-1, 1)
