"""The paper's linear probe: all splits and random starts trained at once."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spgcl.errors import InputError
from spgcl.evaluation.checks import checked_task
from spgcl.evaluation.metrics import MEASURES
from spgcl.evaluation.scores import Scores, SplitScore
from spgcl.evaluation.stacking import Stack, logits_of, nodes_of, stacks

if TYPE_CHECKING:
    from spgcl.datasets.dataset import Splits

_SEED = 0
_EPOCHS = 1000
_LEARNING_RATE = 5e-4
_EPOCHS_A_WORD = 20
# Rows are read twice an epoch: on CPU, splits are trained together only while their rows stay in its cache.
_CACHED_BYTES = 2**25


def probe(
    embeddings: Any,
    labels: Any,
    splits: "Splits",
    *,
    metric: str = "accuracy",
    starts: int | None = None,
    seed: int = _SEED,
    epochs: int = _EPOCHS,
    learning_rate: float = _LEARNING_RATE,
    device: str | torch.device = "cpu",
    progress: Callable[[float], None] | None = None,
) -> Scores:
    """Score embeddings by the paper's protocol.

    One linear layer a split and start, trained on all its training rows at once by Adam on the cross-entropy.
    The epoch is the first that is best on the validation part; the test part is read once, with its weights.

    Args:
        embeddings: One row a node, taken as they are.
        labels: One class a node, 0 to classes - 1; a training part may lack classes.
        splits: Training, validation and test nodes.
        metric: "accuracy", or "roc_auc" for two classes.
        starts: Random initialisations a split; by default 10 where there is one split, else 1.
        seed: Decides the initialisations, on every device the same.
        epochs: Steps of the optimiser.
        learning_rate: Of Adam.
        device: Where to compute.
        progress: Told now and then what share is done.
    """
    checked, values, num_classes = checked_task(embeddings, labels, splits, metric)
    starts = starts if starts is not None else default_starts(splits)
    for name, count in (("starts", starts), ("epochs", epochs)):
        if count < 1:
            raise InputError(f"{name} is {count}; a probe needs at least 1")
    vectors, targets = torch.from_numpy(checked).to(device), torch.from_numpy(values).to(device)
    weights, biases = initial_weights(len(splits), starts, num_classes, vectors.shape[1], seed)
    records: list[SplitScore] = []
    limit = {"most_bytes": _CACHED_BYTES} if vectors.device.type == "cpu" else {}
    for stack in stacks(vectors, targets, splits, **limit):
        group = slice(stack.splits.start, stack.splits.stop)
        best = _Best(weights[group].to(device), biases[group].to(device))
        say = _share_of(stack, len(splits), epochs, progress)
        _train(stack, best, metric, epochs, learning_rate, say)
        records += best.scores(stack, vectors, targets, splits, metric)
    return Scores.of(records, metric=metric, protocol="paper")


def predict_first_split(
    embeddings: Any,
    labels: Any,
    splits: "Splits",
    *,
    metric: str = "accuracy",
    device: str | torch.device = "cpu",
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Test nodes of the first split, and the class that `probe` with its first start there gives each."""
    checked, values, num_classes = checked_task(embeddings, labels, splits, metric)
    vectors, targets = torch.from_numpy(checked).to(device), torch.from_numpy(values).to(device)
    starts = default_starts(splits)
    weights, biases = initial_weights(len(splits), starts, num_classes, vectors.shape[1], _SEED)
    best = _Best(weights[:1, :1].to(device), biases[:1, :1].to(device))
    first = replace(splits, **{part: getattr(splits, part)[:1] for part in ("train", "validation", "test")})
    (stack,) = stacks(vectors, targets, first)
    _train(stack, best, metric, _EPOCHS, _LEARNING_RATE)
    nodes = nodes_of(splits.test[0], device)
    logits = logits_of(vectors, nodes, best.weights[0], best.biases[0])
    return nodes.cpu().numpy(), logits[0, :, 0].argmax(dim=-1).cpu().numpy()


def default_starts(splits: "Splits") -> int:
    """Random initialisations a split that the protocol asks for."""
    return 10 if len(splits) == 1 else 1


def initial_weights(
    num_splits: int, starts: int, num_classes: int, width: int, seed: int
) -> tuple[Tensor, Tensor]:
    """Random weights (splits, starts, classes, width) and biases, drawn as `torch.nn.Linear` draws them."""
    generator = torch.Generator().manual_seed(seed)
    bound = width**-0.5
    shape = (num_splits, starts, num_classes)
    weights = torch.empty(*shape, width).uniform_(-bound, bound, generator=generator)
    return weights, torch.empty(shape).uniform_(-bound, bound, generator=generator)


class _Best:
    """The weights of each split and start at their best epoch on the validation part so far."""

    def __init__(self, weights: Tensor, biases: Tensor) -> None:
        self.weights, self.biases = weights, biases
        self.validation = torch.full(biases.shape[:2], -1.0, dtype=torch.float64, device=biases.device)
        self.epochs = torch.zeros(biases.shape[:2], dtype=torch.int64, device=biases.device)

    def update(self, epoch: int, validation: Tensor, weights: Tensor, biases: Tensor) -> None:
        better = validation > self.validation
        self.validation = torch.where(better, validation, self.validation)
        self.epochs = torch.where(better, epoch, self.epochs)
        self.weights = torch.where(better[..., None, None], weights, self.weights)
        self.biases = torch.where(better[..., None], biases, self.biases)

    def scores(
        self, stack: Stack, vectors: Tensor, labels: Tensor, splits: "Splits", metric: str
    ) -> list[SplitScore]:
        """Read the test part of every split, once."""
        records = []
        for place, split in enumerate(stack.splits):
            nodes = nodes_of(splits.test[split], vectors.device)
            logits = logits_of(vectors, nodes, self.weights[place], self.biases[place])
            tests = 100 * MEASURES[metric](logits, labels[nodes][None])[0]
            validations = 100 * self.validation[place]
            records += [
                SplitScore(split, start, validation, test, epoch=epoch)
                for start, (validation, test, epoch) in enumerate(
                    zip(validations.tolist(), tests.tolist(), self.epochs[place].tolist(), strict=True)
                )
            ]
        return records


def _share_of(
    stack: Stack, num_splits: int, epochs: int, progress: Callable[[float], None] | None
) -> Callable[[int], None]:
    """From an epoch of one stack to the share of all of them that is done."""

    def say(epoch: int) -> None:
        if progress and epoch % _EPOCHS_A_WORD == 0:
            progress((stack.splits.start + len(stack.splits) * epoch / epochs) / num_splits)

    return say


@torch.no_grad()
def _train(
    stack: Stack,
    best: _Best,
    metric: str,
    epochs: int,
    learning_rate: float,
    say: Callable[[int], None] | None = None,
) -> None:
    num_splits, starts, num_classes, width = best.weights.shape
    # The starts of a split share its rows, so they are columns of one product.
    weights = best.weights.reshape(num_splits, -1, width).clone()
    biases = best.biases.reshape(num_splits, 1, -1).clone()
    # Adam works entry by entry: one optimiser over the stacked weights is one a split and start.
    fused = weights.device.type in ("cpu", "cuda")
    optimiser = torch.optim.Adam([weights, biases], lr=learning_rate, fused=fused)
    train_rows = stack.rows[:, : stack.num_train]
    scale, targets = stack.residual_scale()[..., None, None], stack.targets(num_classes)[:, :, None]
    for epoch in range(epochs + 1):
        if say:
            say(epoch)
        # One product serves this epoch's step and the score of the weights the last step gave.
        logits = torch.baddbmm(biases, stack.rows, weights.transpose(1, 2))
        logits = logits.view(num_splits, -1, starts, num_classes)
        if epoch:
            validation = MEASURES[metric](logits[:, stack.num_train :], stack.validation_labels)
            best.update(epoch, validation, weights.view_as(best.weights), biases.view_as(best.biases))
        if epoch < epochs:
            residuals = logits[:, : stack.num_train].softmax(dim=-1).mul_(scale).sub_(targets).flatten(2)
            weights.grad = torch.bmm(residuals.transpose(1, 2), train_rows)
            biases.grad = residuals.sum(dim=1, keepdim=True)
            optimiser.step()
