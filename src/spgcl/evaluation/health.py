"""Curves about classes during training, as the paper plots them; training itself never uses labels."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cosine_similarity

from spgcl.engine.similarity import nearest_rows, unit_rows
from spgcl.methods.method import Method, Prepared
from spgcl.training.loop import Observer

_MOST_ANCHORS = 4096


def observer(labels: NDArray[Any] | None, *, positives: int = 5) -> Observer:
    """Observes a method between steps: its own curves and, with labels, those about classes."""

    def observe(method: Method, prepared: Prepared) -> dict[str, float]:
        numbers = method.observe(prepared)
        if labels is not None:
            classes = torch.as_tensor(labels, device=prepared.graph.device)
            numbers["class_centre_distance"] = class_centre_distance(method.embed(prepared), classes)
            numbers["transformed_homophily"] = selected_homophily(method.space(prepared), classes, positives)
        return numbers

    return observe


def class_centre_distance(embeddings: Tensor, labels: Tensor) -> float:
    """Mean cosine distance between nodes and the mean embedding of their class (Figure 3 of the paper).

    Nodes without a class, marked by a negative label, are left out.
    """
    embeddings, labels = embeddings[labels >= 0], labels[labels >= 0]
    count = int(labels.max()) + 1
    sums = torch.zeros(count, embeddings.shape[1], device=embeddings.device).index_add_(0, labels, embeddings)
    centres = sums / torch.bincount(labels, minlength=count).clamp(min=1)[:, None]
    similarity = cosine_similarity(embeddings, centres[labels], dim=1)
    return float((1 - similarity).mean())


def selected_homophily(vectors: Tensor, labels: Tensor, positives: int) -> float:
    """How often the nodes most similar to a node have its class, over at most 4,096 evenly spread nodes.

    Nodes without a class, marked by a negative label, are left out.
    """
    rows, labels = unit_rows(vectors[labels >= 0]), labels[labels >= 0]
    spread = np.linspace(0, len(rows) - 1, min(len(rows), _MOST_ANCHORS)).astype(np.int64)
    anchors = torch.from_numpy(spread).to(rows.device)
    _, nearest = nearest_rows(rows, anchors, positives)
    return float((labels[nearest] == labels[anchors][:, None]).float().mean())
