"""The reference's linear probe: one plain training per split and restart.

FROZEN with `timing.reference`. The protocol is that of `spgcl.evaluation.probe` (as many epochs, the
same learning rate, the epoch chosen on validation), so that the two differ only in how it is computed.
"""

import copy
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

if TYPE_CHECKING:
    from spgcl.datasets import Splits


def probe(
    embeddings: NDArray[np.float32],
    labels: NDArray[np.int64],
    splits: "Splits",
    *,
    metric: str,
    device: torch.device,
    epochs: int = 1000,
    learning_rate: float = 5e-4,
    seed: int = 0,
) -> float:
    """Mean test score in percent over splits, and over ten restarts if there is one split."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        vectors, classes = torch.from_numpy(embeddings).to(device), torch.from_numpy(labels).to(device)
        scores = []
        for split in range(len(splits)):
            masks = [
                torch.from_numpy(part[split]).to(device)
                for part in (splits.train, splits.validation, splits.test)
            ]
            parts = [(vectors[mask], classes[mask]) for mask in masks]
            num_classes = int(labels.max()) + 1
            scores += [
                _score(parts, num_classes, metric, epochs, learning_rate)
                for _ in range(10 if len(splits) == 1 else 1)
            ]
    return 100 * float(np.mean(scores))


def _score(
    parts: list[tuple[Tensor, Tensor]], num_classes: int, metric: str, epochs: int, learning_rate: float
) -> float:
    (rows, classes), (validation_rows, validation_classes), (test_rows, test_classes) = parts
    layer = nn.Linear(rows.shape[1], num_classes).to(rows.device)
    optimiser = torch.optim.Adam(layer.parameters(), lr=learning_rate)
    best, weights = -1.0, copy.deepcopy(layer.state_dict())
    for _ in range(epochs):
        optimiser.zero_grad()
        nn.functional.cross_entropy(layer(rows), classes).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        with torch.no_grad():
            score = _measure(layer(validation_rows), validation_classes, metric)
        if score > best:
            best, weights = score, copy.deepcopy(layer.state_dict())
    layer.load_state_dict(weights)
    with torch.no_grad():
        return _measure(layer(test_rows), test_classes, metric)


def _measure(logits: Tensor, classes: Tensor, metric: str) -> float:
    if metric == "accuracy":
        return float((logits.argmax(dim=1) == classes).float().mean())
    margins = logits[:, 1] - logits[:, 0]
    negative = margins[classes == 0].sort().values
    positive = margins[classes == 1].contiguous()
    below = torch.searchsorted(negative, positive) + torch.searchsorted(negative, positive, right=True)
    return float(below.double().mean() / (2 * len(negative)))
