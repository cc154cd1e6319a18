"""The paper's linear probe.

For one split and one restart, the protocol is

    layer = nn.Linear(width, num_classes)
    optimiser = Adam(layer.parameters(), lr=5e-4)
    best = -1
    for epoch in range(1000):
        optimiser.zero_grad()
        cross_entropy(layer(rows[train]), labels[train]).backward()
        optimiser.step()
        score = accuracy(layer(rows[validation]), labels[validation])
        if score > best:
            best, kept = score, copy.deepcopy(layer)
    test = accuracy(kept(rows[test]), labels[test])

Here all splits and restarts are trained at once, and validation rows meet the weights of many epochs at once.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spgcl.datasets.dataset import Splits
from spgcl.engine.device import can_capture
from spgcl.engine.fixed_rows import fixed_rows
from spgcl.engine.optimiser import Adam
from spgcl.engine.recording import captured, side_stream
from spgcl.errors import InputError
from spgcl.evaluation.checks import checked_task
from spgcl.evaluation.metrics import MEASURES, other_scores
from spgcl.evaluation.scores import Scores, SplitScore
from spgcl.evaluation.stacking import STACK_BYTES, Stack, logits_of, nodes_of, stacks

_SEED = 0
EPOCHS = 1000
LEARNING_RATE = 5e-4
# So many epochs are trained before all of them are measured on the validation rows in one product.
_ROUND = 20
_LOGIT_BYTES = 2**26
# On CPU, splits are trained together only while the rows of all of them stay in the cache.
MOST_BYTES = {"cpu": 2**22, "cuda": STACK_BYTES}


def probe(
    embeddings: Any,
    labels: Any,
    splits: Splits,
    *,
    metric: str = "accuracy",
    starts: int | None = None,
    seed: int = _SEED,
    epochs: int = EPOCHS,
    learning_rate: float = LEARNING_RATE,
    device: str | torch.device = "cpu",
    progress: Callable[[float], None] | None = None,
) -> Scores:
    """Score embeddings by the paper's protocol.

    One linear layer per split and restart is trained by Adam on the cross-entropy of all training rows. The
    first epoch with the best validation score is kept; the test part is read once, with its weights.

    Args:
        embeddings: One row per node, used as they are.
        labels: One class per node, 0 to classes - 1; a training part may lack classes.
        splits: Training, validation and test nodes.
        metric: "accuracy", or "roc_auc" for two classes.
        starts: Random restarts per split; by default 10 if there is one split, else 1.
        seed: Decides the initial weights, on every device the same.
        epochs: Steps of the optimiser.
        learning_rate: Of Adam.
        device: Where to compute.
        progress: Called now and then with the fraction that is done.
    """
    vectors, targets, num_classes = checked_task(embeddings, labels, splits, metric, device)
    starts = splits.restarts if starts is None else starts
    for name, count in (("starts", starts), ("epochs", epochs)):
        if count < 1:
            raise InputError(f"{name} is {count}; a probe needs at least 1")
    initial = initial_weights(len(splits), starts, num_classes, vectors.shape[1], seed)
    records: list[SplitScore] = []
    for stack in stacks(vectors, targets, splits, starts * num_classes, MOST_BYTES):
        best = _trained(stack, initial, metric, epochs, learning_rate, progress)
        records += best.scores(stack, vectors, targets, splits)
    if progress:
        progress(1)
    return Scores.of(records, metric=metric, protocol="paper")


def predict_first_split(
    embeddings: Any,
    labels: Any,
    splits: Splits,
    *,
    metric: str = "accuracy",
    device: str | torch.device = "cpu",
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Test nodes of the first split, and the class of each by the first layer that `probe` trains there."""
    vectors, targets, num_classes = checked_task(embeddings, labels, splits, metric, device)
    weights, biases = initial_weights(len(splits), splits.restarts, num_classes, vectors.shape[1], _SEED)
    first = replace(splits, **{part: getattr(splits, part)[:1] for part in ("train", "validation", "test")})
    (stack,) = stacks(vectors, targets, first, num_classes, MOST_BYTES)
    best = _trained(stack, (weights[:1, :1], biases[:1, :1]), metric, EPOCHS, LEARNING_RATE)
    nodes = nodes_of(splits.test[0], device)
    logits = logits_of(vectors, nodes, *best.kept(0, vectors.shape[1]))
    return nodes.cpu().numpy(), logits[0, :, 0].argmax(dim=-1).cpu().numpy()


def initial_weights(
    num_splits: int, starts: int, num_classes: int, width: int, seed: int
) -> tuple[Tensor, Tensor]:
    """Random weights (splits, starts, classes, width) and biases, drawn as `torch.nn.Linear` draws them."""
    generator = torch.Generator().manual_seed(seed)
    bound = width**-0.5
    shape = (num_splits, starts, num_classes)
    weights = torch.empty(*shape, width).uniform_(-bound, bound, generator=generator)
    return weights, torch.empty(shape).uniform_(-bound, bound, generator=generator)


@torch.no_grad()
def _trained(
    stack: Stack,
    initial: tuple[Tensor, Tensor],
    metric: str,
    epochs: int,
    learning_rate: float,
    progress: Callable[[float], None] | None = None,
) -> "_Best":
    """Train the splits of a stack from the initial weights and biases of all splits."""
    weights, biases = (
        part[stack.splits.start : stack.splits.stop].to(stack.train.device) for part in initial
    )
    # A bias is the weight of the column of ones behind the embedding.
    joined = stack.train.new_zeros(*biases.shape, stack.train.shape[-1])
    joined[..., : weights.shape[-1]] = weights
    joined[..., weights.shape[-1]] = biases
    best, training = _Best(joined, metric), Training(stack, joined, learning_rate)
    for done in range(0, epochs, _ROUND):
        if progress:
            progress((stack.splits.start + len(stack.splits) * done / epochs) / len(initial[0]))
        best.update(stack, training.advance(min(_ROUND, epochs - done)), done + 1)
    return best


class _Best:
    """The weights of each split and restart at their best epoch on the validation part so far."""

    def __init__(self, weights: Tensor, metric: str) -> None:
        self.weights, self.metric = weights, metric
        self.validation = weights.new_full(weights.shape[:2], -1.0, dtype=torch.float64)
        self.epochs = torch.zeros(weights.shape[:2], dtype=torch.int64, device=weights.device)

    def update(self, stack: Stack, rounds: Tensor, first_epoch: int) -> None:
        """Measure weights (splits, epochs, starts, classes, width) of consecutive epochs; keep the best."""
        per_epoch = rounds[0, 0].numel() // rounds.shape[-1] * stack.validation_labels.numel()
        at_once = max(1, _LOGIT_BYTES // (per_epoch * rounds.element_size()))
        for offset in range(0, rounds.shape[1], at_once):
            weights = rounds[:, offset : offset + at_once]
            logits = weights.flatten(1, 3) @ stack.validation.transpose(1, 2)
            logits = logits.view(*weights.shape[:4], -1)
            validation, epochs = _measure(logits, stack.validation_labels, self.metric).max(dim=1)
            better = validation > self.validation
            self.validation = torch.where(better, validation, self.validation)
            self.epochs = torch.where(better, epochs + first_epoch + offset, self.epochs)
            found = weights.take_along_dim(epochs[:, None, :, None, None], dim=1).squeeze(1)
            self.weights = torch.where(better[..., None, None], found, self.weights)

    def kept(self, index: int, width: int) -> tuple[Tensor, Tensor]:
        """Weights (starts, classes, width) and biases of one split of the stack."""
        return self.weights[index, ..., :width], self.weights[index, ..., width]

    def scores(self, stack: Stack, vectors: Tensor, labels: Tensor, splits: Splits) -> list[SplitScore]:
        """Read the test part of every split, once."""
        records = []
        for index, split in enumerate(stack.splits):
            nodes = nodes_of(splits.test[split], vectors.device)
            logits = logits_of(vectors, nodes, *self.kept(index, vectors.shape[1]))
            tests = 100 * MEASURES[self.metric](logits, labels[nodes][None])[0]
            others = other_scores(logits, labels[nodes][None], self.metric)
            columns = (100 * self.validation[index], tests, self.epochs[index])
            rows = zip(*(column.tolist() for column in columns), others, strict=True)
            records += [
                SplitScore(split, start, validation, test, epoch=epoch, others=other)
                for start, (validation, test, epoch, other) in enumerate(rows)
            ]
        return records


def _measure(logits: Tensor, labels: Tensor, metric: str) -> Tensor:
    """Scores (splits, epochs, starts) of logits (splits, epochs, starts, classes, rows)."""
    if metric != "accuracy":
        by_row = logits.flatten(1, 2).permute(0, 3, 1, 2)
        return MEASURES[metric](by_row, labels).view(logits.shape[:3])
    # Many times faster than an argmax, and different only for ties, which trained weights hardly give.
    known = (labels >= 0)[:, None, None]
    classes = labels.clamp(min=0)[:, None, None, None].expand(-1, *logits.shape[1:3], -1, -1)
    own = logits.gather(3, classes).squeeze(3)
    return ((own == logits.amax(dim=3)) & known).sum(dim=-1).double() / known.sum(dim=-1)


class Training:
    """Epochs on the training rows; on CUDA a round of them is captured once and replayed, as one launch."""

    def __init__(self, stack: Stack, weights: Tensor, learning_rate: float) -> None:
        # The restarts of a split share its rows, as the splits of a group do: columns of one product.
        self._weights = weights.reshape(len(stack.train), -1, weights.shape[-1]).clone()
        self._rows = fixed_rows(stack.train, self._weights.shape[1])
        self._row_weights = _in_blocks(stack.row_weights()[:, :, None, None], self._rows.block)
        self._targets = _in_blocks(stack.targets(weights.shape[2])[:, :, None], self._rows.block)
        self._rounds = weights.new_empty(len(weights), _ROUND, *weights.shape[1:])
        # Adam works entry by entry: one optimiser over the stacked weights equals one per split and restart.
        self._optimiser = Adam([([self._weights], 0.0)], learning_rate, decoupled=False)
        self._can_capture = can_capture(weights)
        self._replay: Callable[[], None] | None = None

    def advance(self, epochs: int) -> Tensor:
        """Train for at most one round; the weights after each epoch, as `_Best.update` takes them."""
        if not self._can_capture or epochs < _ROUND:
            self._compute(epochs)
        elif self._replay:
            self._replay()
        else:
            with side_stream():
                self._compute(epochs)
            # Captured work is not run: this is for the rounds that follow.
            self._optimiser.drop_gradients()
            self._replay, _ = captured(partial(self._compute, epochs))
        return self._rounds[:, :epochs]

    def _compute(self, epochs: int) -> None:
        shape = *self._row_weights.shape[:3], *self._rounds.shape[2:4], self._row_weights.shape[-1]
        for epoch in range(epochs):
            logits = self._rows.logits(self._weights)
            probabilities = logits.view(shape).softmax(dim=4)
            residuals = probabilities.mul_(self._row_weights).sub_(self._targets).view_as(logits)
            self._weights.grad = self._rows.gradient(residuals)
            self._optimiser.step()
            self._rounds[:, epoch] = self._weights.view_as(self._rounds[:, epoch])


def _in_blocks(values: Tensor, rows: int) -> Tensor:
    """From (groups, ..., all rows) to (groups, blocks, ..., rows of a block)."""
    return values.view(*values.shape[:-1], -1, rows).movedim(-2, 1).contiguous()
