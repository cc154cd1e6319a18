"""Training and validation rows of several splits in one padded block, for products over all of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

if TYPE_CHECKING:
    from spgcl.datasets.dataset import Splits

_GROUP_BYTES = 2**30
_TEST_ROWS = 2**15


@dataclass(frozen=True)
class Stack:
    """Rows of a few splits, each split's training rows first, then its validation rows.

    Attributes:
        splits: Which splits these are.
        rows: Embeddings, shape (splits, training rows + validation rows, width), zero where padded.
        train_labels: Shape (splits, training rows), -1 where padded.
        validation_labels: Shape (splits, validation rows), -1 where padded.
    """

    splits: range
    rows: Tensor
    train_labels: Tensor
    validation_labels: Tensor

    @property
    def num_train(self) -> int:
        """Training rows of the largest split, up to where they are padded."""
        return self.train_labels.shape[1]

    def residual_scale(self) -> Tensor:
        """Weight of every training row in its split's mean, zero where padded, shape (splits, rows)."""
        real = self.train_labels >= 0
        return real / real.sum(dim=1, keepdim=True)

    def targets(self, num_classes: int) -> Tensor:
        """One-hot training labels times the rows' weights, shape (splits, rows, classes)."""
        hot = torch.nn.functional.one_hot(self.train_labels.clamp(min=0), num_classes)
        return hot * self.residual_scale()[:, :, None]


def stacks(
    vectors: Tensor, labels: Tensor, splits: "Splits", *, most_bytes: int = _GROUP_BYTES
) -> Iterator[Stack]:
    """All splits in as few stacks as fit into `most_bytes` each, by default 1 GiB; one split at least."""
    num_train, num_validation = splits.train.sum(axis=1).max(), splits.validation.sum(axis=1).max()
    size = (num_train + num_validation) * vectors.shape[1] * vectors.element_size()
    count = max(1, most_bytes // int(size))
    for start in range(0, len(splits), count):
        chosen = range(start, min(start + count, len(splits)))
        rows = vectors.new_zeros(len(chosen), num_train + num_validation, vectors.shape[1])
        train_labels = labels.new_full((len(chosen), num_train), -1)
        validation_labels = labels.new_full((len(chosen), num_validation), -1)
        for place, split in enumerate(chosen):
            for mask, first, part in (
                (splits.train[split], 0, train_labels),
                (splits.validation[split], num_train, validation_labels),
            ):
                nodes = nodes_of(mask, vectors.device)
                rows[place, first : first + len(nodes)] = vectors[nodes]
                part[place, : len(nodes)] = labels[nodes]
        yield Stack(chosen, rows, train_labels, validation_labels)


def nodes_of(mask: NDArray[np.bool_], device: Any) -> Tensor:
    """Indices of the nodes in a mask, as a tensor on a device."""
    return torch.from_numpy(np.flatnonzero(mask)).to(device)


def logits_of(vectors: Tensor, nodes: Tensor, weights: Tensor, biases: Tensor) -> Tensor:
    """Logits of some nodes under weights of shape (starts, classes, width): (1, nodes, starts, classes)."""
    flat = weights.flatten(0, 1)
    parts = [vectors[part] @ flat.T for part in torch.split(nodes, _TEST_ROWS)]
    return (torch.cat(parts) + biases.flatten()).view(1, len(nodes), *biases.shape)
