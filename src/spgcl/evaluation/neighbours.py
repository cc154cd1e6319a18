"""Nearest neighbours by cosine similarity: a classifier without training, and the search behind `similar`."""

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spgcl.engine.similarity import comparable_rows, largest, unit_rows
from spgcl.errors import InputError
from spgcl.evaluation.checks import checked_task, comparable_embeddings
from spgcl.evaluation.metrics import MEASURES
from spgcl.evaluation.scores import Scores, SplitScore
from spgcl.evaluation.stacking import nodes_of

if TYPE_CHECKING:
    from spgcl.datasets.dataset import Splits

_BLOCK_ENTRIES = 2**24


def knn(
    embeddings: Any,
    labels: Any,
    splits: "Splits",
    *,
    neighbours: int = 10,
    metric: str = "accuracy",
    device: str | torch.device = "cpu",
) -> Scores:
    """Score embeddings by the vote of each node's most cosine-similar training nodes.

    The class with most votes wins; classes with equally many are told apart by their summed similarity.
    Nothing is chosen on the validation part. With fewer training nodes than `neighbours`, all of them vote.

    Args:
        embeddings: One row a node.
        labels: One class a node, 0 to classes - 1.
        splits: Training, validation and test nodes.
        neighbours: How many training nodes vote.
        metric: "accuracy", or "roc_auc" for two classes.
        device: Where to compute.
    """
    checked, values, num_classes = checked_task(embeddings, labels, splits, metric)
    if neighbours < 1:
        raise InputError(f"neighbours is {neighbours}; at least one has to vote")
    vectors = unit_rows(comparable_rows(torch.from_numpy(checked)).to(device))
    classes = torch.from_numpy(values).to(device)
    found = []
    for split in range(len(splits)):
        voters = nodes_of(splits.train[split], device)
        parts = [nodes_of(masks[split], device) for masks in (splits.validation, splits.test)]
        votes = _votes(vectors, torch.cat(parts), voters, classes[voters], num_classes, neighbours)
        for part, share in zip(parts, torch.split(votes, [len(part) for part in parts]), strict=True):
            found.append(MEASURES[metric](share[None, :, None], classes[part][None]))
    # Read only now: a device need not wait between splits.
    scores = (100 * torch.cat(found)).view(len(splits), 2).tolist()
    records = [SplitScore(split, 0, *pair) for split, pair in enumerate(scores)]
    return Scores.of(records, metric=metric, protocol=f"{neighbours}-nearest neighbours")


def _votes(
    vectors: Tensor, nodes: Tensor, voters: Tensor, classes: Tensor, num_classes: int, neighbours: int
) -> Tensor:
    """Votes of each class, and below one vote its share of the similarity, shape (nodes, classes)."""
    count = min(neighbours, len(voters))
    references = vectors[voters].T
    votes = torch.zeros(len(nodes), num_classes, dtype=torch.float64, device=vectors.device)
    blocks = torch.split(nodes, max(1, _BLOCK_ENTRIES // len(voters)))
    # The same memory for every block: fresh pages cost the CPU a tenth of the time.
    all_queries = vectors.new_empty(len(blocks[0]), vectors.shape[1])
    all_similarities = vectors.new_empty(len(blocks[0]), len(voters))
    for block, counts in zip(blocks, torch.split(votes, len(blocks[0])), strict=True):
        queries = torch.index_select(vectors, 0, block, out=all_queries[: len(block)])
        similarities = torch.mm(queries, references, out=all_similarities[: len(block)])
        near, columns = largest(similarities, count)
        # Sums of similarities lie within +-count, so this part decides only between equal votes.
        shares = 1 + near.double() / (2 * count + 1)
        counts.scatter_add_(1, classes[columns], shares)
    return votes


def most_similar(embeddings: Any, row: int, count: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The `count` rows most cosine-similar to one row, most similar first, and their similarities.

    The row itself is left out; equally similar rows come in row order. With fewer other rows, all are given.
    """
    vectors = comparable_embeddings(embeddings)
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
