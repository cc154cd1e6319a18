"""Training and validation rows of several splits in padded blocks, for products with all of them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spgcl.datasets.dataset import Splits
from spgcl.engine.device import by_device
from spgcl.engine.fixed_rows import BLOCK_ROWS, free_columns

STACK_BYTES = 2**30
_EVERYWHERE = {"cuda": STACK_BYTES}
_TEST_ROWS = 2**15
# In entries: rows begin at multiples of a vector register and of a memory transaction.
_ALIGNMENT = 16


@dataclass(frozen=True)
class Stack:
    """Rows of a few splits. An embedding is followed by a one, the input of the bias, and by zeros.

    Splits whose training parts overlap much form one group, which holds a row of any of them once.

    Attributes:
        splits: Which splits these are, in groups of equally many members.
        train: Training rows, shape (groups, rows, padded width), zero where padded to whole blocks.
        train_labels: Shape (groups, members, rows), -1 if a member does not train on the row.
        validation: Validation rows, shape (splits, rows, padded width), zero where padded.
        validation_labels: Shape (splits, rows), -1 where padded.
    """

    splits: range
    train: Tensor
    train_labels: Tensor
    validation: Tensor
    validation_labels: Tensor

    def row_weights(self) -> Tensor:
        """Weight of every row in the mean over each member's training part, shape (groups, members, rows)."""
        inside = self.train_labels >= 0
        return (inside / inside.sum(dim=2, keepdim=True)).to(self.train)

    def targets(self, num_classes: int) -> Tensor:
        """One-hot labels times the weights of their rows, shape (groups, members, classes, rows)."""
        hot = torch.nn.functional.one_hot(self.train_labels.clamp(min=0), num_classes)
        return (hot * self.row_weights()[..., None]).transpose(2, 3).contiguous()


def padded_width(width: int) -> int:
    """Columns of a stored row: `width` values, a one for the bias, and zeros for alignment."""
    return -(width + 1) // _ALIGNMENT * -_ALIGNMENT


def stacks(
    vectors: Tensor, labels: Tensor, splits: Splits, columns: int, most_bytes: Mapping[str, int] = _EVERYWHERE
) -> Iterator[Stack]:
    """All splits in one group if that is cheaper, else stacks of as many as fit into the device's bytes.

    The rows of a split are multiplied with as many weight vectors as there are `columns`.
    """
    num_train, num_validation = (int(part.sum(axis=1).max()) for part in (splits.train, splits.validation))
    num_shared = int(np.logical_or.reduce(splits.train).sum())
    row_bytes = padded_width(vectors.shape[1]) * vectors.element_size()
    fits = (num_shared + len(splits) * num_validation) * row_bytes <= STACK_BYTES
    if fits and num_shared * columns <= num_train * max(columns, free_columns(vectors)):
        yield _stack(vectors, labels, splits, range(len(splits)), members=len(splits))
        return
    count = max(1, by_device(most_bytes, vectors.device) // ((num_train + num_validation) * row_bytes))
    for start in range(0, len(splits), count):
        yield _stack(vectors, labels, splits, range(start, min(start + count, len(splits))), members=1)


def _stack(vectors: Tensor, labels: Tensor, splits: Splits, chosen: range, *, members: int) -> Stack:
    train = splits.train[chosen.start : chosen.stop].reshape(-1, members, splits.train.shape[1])
    validation = splits.validation[chosen.start : chosen.stop]
    train_rows, train_labels = _rows(vectors, labels, train, BLOCK_ROWS)
    validation_rows, validation_labels = _rows(vectors, labels, validation[:, None], 1)
    return Stack(chosen, train_rows, train_labels, validation_rows, validation_labels.squeeze(1))


def _rows(vectors: Tensor, labels: Tensor, masks: NDArray[np.bool_], multiple: int) -> tuple[Tensor, Tensor]:
    """Rows of any member of each group, and their labels for each member, -1 if it does not have the row.

    Masks have the shape (groups, members, nodes); the number of rows is padded to a multiple.
    """
    shared, width = np.logical_or.reduce(masks, axis=1), vectors.shape[1]
    num_rows = -int(shared.sum(axis=1).max()) // multiple * -multiple
    rows = vectors.new_zeros(len(masks), num_rows, padded_width(width))
    classes = labels.new_full((*masks.shape[:2], num_rows), -1)
    for group, mask in enumerate(shared):
        nodes = nodes_of(mask, vectors.device)
        rows[group, : len(nodes), :width] = vectors[nodes]
        rows[group, : len(nodes), width] = 1
        inside = torch.from_numpy(masks[group][:, mask]).to(vectors.device)
        classes[group, :, : len(nodes)] = torch.where(inside, labels[nodes], -1)
    return rows, classes


def nodes_of(mask: NDArray[np.bool_], device: Any) -> Tensor:
    """Indices of the nodes in a mask, as a tensor on a device."""
    return torch.from_numpy(np.flatnonzero(mask)).to(device)


def logits_of(vectors: Tensor, nodes: Tensor, weights: Tensor, biases: Tensor) -> Tensor:
    """Logits of some nodes under weights of shape (starts, classes, width): (1, nodes, starts, classes)."""
    flat = weights.flatten(0, 1)
    # Gathering rows costs more than the unused products.
    if 2 * len(nodes) > len(vectors):
        logits = (vectors @ flat.T)[nodes]
    else:
        logits = torch.cat([vectors[part] @ flat.T for part in torch.split(nodes, _TEST_ROWS)])
    return (logits + biases.flatten()).view(1, len(nodes), *biases.shape)
