"""Checks of labels, embeddings and splits before an evaluation; the digest of a task."""

import hashlib
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spgcl.datasets.dataset import Splits
from spgcl.engine.similarity import comparable_rows
from spgcl.errors import InputError, unknown
from spgcl.evaluation.scores import METRICS
from spgcl.graph import Graph


def checked_labels(labels: Any, num_nodes: int) -> NDArray[np.int64]:
    """Labels as int64, one per node; a negative label marks a node without a class."""
    values = np.asarray(labels)
    if values.ndim != 1 or values.dtype.kind not in "iub":
        raise InputError(
            f"labels need one integer per node (0 to classes - 1), not {values.dtype} of shape {values.shape}"
        )
    if len(values) != num_nodes:
        raise InputError(
            f"{len(values)} labels do not cover {num_nodes} nodes; give one per node, in node order"
        )
    if not (values >= 0).any():
        raise InputError("no node has a label")
    return values.astype(np.int64, copy=False)


def checked_classes(labels: Any, num_nodes: int) -> tuple[NDArray[np.int64], int]:
    """Labels of at least two classes, and the number of classes from 0 to the largest."""
    values = checked_labels(labels, num_nodes)
    present = np.unique(values[values >= 0])
    if len(present) < 2:
        raise InputError(f"every label is {present[0]}; an evaluation needs at least two classes")
    return values, int(present[-1]) + 1


def checked_embeddings(embeddings: Any) -> NDArray[np.float32]:
    """Embeddings as a finite float32 matrix, one row per node; tensors of any device are accepted."""
    if hasattr(embeddings, "detach"):
        embeddings = embeddings.detach().cpu().numpy()
    values = np.ascontiguousarray(embeddings, dtype=np.float32)
    if values.ndim != 2 or not values.size:
        raise InputError(f"embeddings need one row per node, not shape {values.shape}")
    # A sum that is not finite may be an overflow; only then every entry is checked.
    if not np.isfinite(values.sum(dtype=np.float64)) and not np.isfinite(values).all():
        row, column = np.argwhere(~np.isfinite(values))[0].tolist()
        raise InputError(
            f"the embedding of node {row} has {values[row, column]} in column {column}; it must be finite"
        )
    return values


def comparable_embeddings(embeddings: Any) -> NDArray[np.float32]:
    """Checked embeddings whose rows can be squared, see `spgcl.engine.similarity.comparable_rows`."""
    # torch.from_numpy warns about read-only arrays.
    values = np.require(checked_embeddings(embeddings), requirements="W")
    return np.asarray(comparable_rows(torch.from_numpy(values)).numpy())


def checked_task(
    embeddings: Any, labels: Any, splits: Splits, metric: str, device: str | torch.device
) -> tuple[Tensor, Tensor, int]:
    """Embeddings and labels on a device, and the number of classes, checked against splits and metric."""
    vectors = checked_embeddings(embeddings)
    num_nodes = splits.train.shape[1]
    if len(vectors) != num_nodes:
        raise InputError(f"{len(vectors)} embeddings but splits over {num_nodes} nodes")
    values, num_classes = checked_classes(labels, num_nodes)
    if metric not in METRICS:
        raise unknown("metric", metric, METRICS)
    if metric == "roc_auc" and num_classes > 2:
        raise InputError(f"roc_auc needs two classes, the labels have {num_classes}; use metric='accuracy'")
    for part in ("train", "validation", "test"):
        _check_part(part, getattr(splits, part), values, metric)
    return torch.from_numpy(vectors).to(device), torch.from_numpy(values).to(device), num_classes


def _check_part(part: str, masks: NDArray[np.bool_], labels: NDArray[np.int64], metric: str) -> None:
    unlabelled = masks & (labels < 0)
    if unlabelled.any():
        split, node = np.argwhere(unlabelled)[0].tolist()
        raise InputError(f"node {node} is in the {part} part of split {split} but has no label")
    if metric == "roc_auc" and part != "train":
        for split, mask in enumerate(masks):
            if len(np.unique(labels[mask])) < 2:
                raise InputError(f"the {part} part of split {split} holds one class only; roc_auc needs both")


def task_digest(graph: Graph, labels: NDArray[np.int64], splits: Splits) -> str:
    """A digest of a graph with its labels and splits, so that only scores of the same task are compared."""
    state = hashlib.sha256(graph.digest.encode() + labels.tobytes())
    for part in ("train", "validation", "test"):
        state.update(getattr(splits, part).tobytes())
    return state.hexdigest()
