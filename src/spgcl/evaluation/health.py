"""What the paper looks at during training with labels in hand: for looking only, never for training."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

from spgcl.methods.method import Method, Prepared
from spgcl.training.loop import Observer

_BLOCK_ROWS = 1024
_MOST_ANCHORS = 4096


def observer(labels: NDArray[Any] | None, *, positives: int = 5) -> Observer:
    """What looks at a method between steps: its own curves and, with labels, those about classes."""

    def look(method: Method, prepared: Prepared) -> dict[str, float]:
        numbers = method.observe(prepared)
        if labels is not None:
            classes = torch.as_tensor(labels, device=prepared.graph.device)
            numbers["class_centre_distance"] = class_centre_distance(method.embed(prepared), classes)
            numbers["transformed_homophily"] = selected_homophily(method.space(prepared), classes, positives)
        return numbers

    return look


def class_centre_distance(embeddings: Tensor, labels: Tensor) -> float:
    """Mean cosine distance between nodes and the mean embedding of their class (Figure 3 of the paper).

    Nodes whose class is not known, marked by a negative label, are left out.
    """
    embeddings, labels = embeddings[labels >= 0], labels[labels >= 0]
    count = int(labels.max()) + 1
    sums = torch.zeros(count, embeddings.shape[1], device=embeddings.device).index_add_(0, labels, embeddings)
    centres = sums / torch.bincount(labels, minlength=count).clamp(min=1)[:, None]
    similarity = torch.nn.functional.cosine_similarity(embeddings, centres[labels], dim=1)
    return float((1 - similarity).mean())


def selected_homophily(vectors: Tensor, labels: Tensor, positives: int) -> float:
    """Share of nodes' most similar other nodes that have their class, over at most 4,096 spread anchors.

    Nodes whose class is not known, marked by a negative label, are left out.
    """
    rows, labels = normalize(vectors[labels >= 0], dim=1), labels[labels >= 0]
    anchors = torch.from_numpy(np.linspace(0, len(rows) - 1, min(len(rows), _MOST_ANCHORS)).astype(np.int64))
    same = []
    for block in torch.split(anchors.to(rows.device), _BLOCK_ROWS):
        similarities = rows[block] @ rows.T
        similarities[torch.arange(len(block), device=rows.device), block] = -torch.inf
        nearest = similarities.topk(min(positives, len(rows) - 1), dim=1).indices
        same.append((labels[nearest] == labels[block][:, None]).float().mean(dim=1))
    return float(torch.cat(same).mean())
