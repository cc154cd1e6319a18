"""The paper's linear probe: all splits and random starts trained at once."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spgcl.engine.optimiser import Adam
from spgcl.engine.recording import capture, side_stream
from spgcl.errors import InputError
from spgcl.evaluation.checks import checked_task
from spgcl.evaluation.fixed_rows import fixed_rows
from spgcl.evaluation.metrics import MEASURES
from spgcl.evaluation.scores import Scores, SplitScore
from spgcl.evaluation.stacking import Stack, logits_of, nodes_of, stacks

if TYPE_CHECKING:
    from spgcl.datasets.dataset import Splits

_SEED = 0
_EPOCHS = 1000
_LEARNING_RATE = 5e-4
# Validation rows wait for this many epochs and then meet the weights of all of them in one product.
_ROUND = 20
_LOGIT_BYTES = 2**26
# Rows are read twice an epoch, and laid out for each: on CPU, splits are trained together only while the rows
# of all of them stay in its cache.
_CACHED_BYTES = 2**22


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
    for stack in stacks(vectors, targets, splits, starts * num_classes, **limit):
        group = slice(stack.splits.start, stack.splits.stop)
        best = _Best(_joined(weights[group].to(device), biases[group].to(device), stack), metric)
        say = _share_of(stack, len(splits), epochs, progress)
        _train(stack, best, epochs, learning_rate, say)
        records += best.scores(stack, vectors, targets, splits)
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
    first = replace(splits, **{part: getattr(splits, part)[:1] for part in ("train", "validation", "test")})
    (stack,) = stacks(vectors, targets, first, num_classes)
    best = _Best(_joined(weights[:1, :1].to(device), biases[:1, :1].to(device), stack), metric)
    _train(stack, best, _EPOCHS, _LEARNING_RATE)
    nodes = nodes_of(splits.test[0], device)
    logits = logits_of(vectors, nodes, *best.kept(0, vectors.shape[1]))
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


def _joined(weights: Tensor, biases: Tensor, stack: Stack) -> Tensor:
    """Weights with their biases in the column that meets the ones of the rows, and zeros behind."""
    joined = stack.train.new_zeros(*biases.shape, stack.train.shape[-1])
    joined[..., : weights.shape[-1]] = weights
    joined[..., weights.shape[-1]] = biases
    return joined


class _Best:
    """The weights of each split and start at their best epoch on the validation part so far."""

    def __init__(self, weights: Tensor, metric: str) -> None:
        self.weights, self.metric = weights, metric
        self.validation = weights.new_full(weights.shape[:2], -1.0, dtype=torch.float64)
        self.epochs = torch.zeros(weights.shape[:2], dtype=torch.int64, device=weights.device)

    def update(self, stack: Stack, rounds: Tensor, first_epoch: int) -> None:
        """Look at the weights (splits, epochs, starts, classes, width) of epochs that follow each other."""
        a_split, rows = rounds[0, 0].numel() // rounds.shape[-1], stack.validation_labels.numel()
        at_once = max(1, _LOGIT_BYTES // (a_split * rows * rounds.element_size()))
        for offset in range(0, rounds.shape[1], at_once):
            weights = rounds[:, offset : offset + at_once]
            logits = weights.flatten(1, 3) @ stack.validation.transpose(1, 2)
            logits = logits.view(*weights.shape[:4], -1)
            scores = _measure(logits, stack.validation_labels, self.metric)
            validation, places = scores.max(dim=1)
            better = validation > self.validation
            self.validation = torch.where(better, validation, self.validation)
            self.epochs = torch.where(better, places + first_epoch + offset, self.epochs)
            found = weights.take_along_dim(places[:, None, :, None, None], dim=1).squeeze(1)
            self.weights = torch.where(better[..., None, None], found, self.weights)

    def kept(self, place: int, width: int) -> tuple[Tensor, Tensor]:
        """Weights (starts, classes, width) and biases of one split."""
        return self.weights[place, ..., :width], self.weights[place, ..., width]

    def scores(self, stack: Stack, vectors: Tensor, labels: Tensor, splits: "Splits") -> list[SplitScore]:
        """Read the test part of every split, once."""
        records = []
        for place, split in enumerate(stack.splits):
            nodes = nodes_of(splits.test[split], vectors.device)
            logits = logits_of(vectors, nodes, *self.kept(place, vectors.shape[1]))
            tests = 100 * MEASURES[self.metric](logits, labels[nodes][None])[0]
            validations = 100 * self.validation[place]
            records += [
                SplitScore(split, start, validation, test, epoch=epoch)
                for start, (validation, test, epoch) in enumerate(
                    zip(validations.tolist(), tests.tolist(), self.epochs[place].tolist(), strict=True)
                )
            ]
        return records


def _measure(logits: Tensor, labels: Tensor, metric: str) -> Tensor:
    """Scores (splits, epochs, starts) of logits (splits, epochs, starts, classes, rows)."""
    if metric != "accuracy":
        by_row = logits.flatten(1, 2).permute(0, 3, 1, 2)
        return MEASURES[metric](by_row, labels).view(logits.shape[:3])
    # Equals an argmax, which is many times slower, but for ties; of trained weights they are chance alone.
    known = (labels >= 0)[:, None, None]
    classes = labels.clamp(min=0)[:, None, None, None].expand(-1, *logits.shape[1:3], -1, -1)
    own = logits.gather(3, classes).squeeze(3)
    return ((own == logits.amax(dim=3)) & known).sum(dim=-1).double() / known.sum(dim=-1)


def _share_of(
    stack: Stack, num_splits: int, epochs: int, progress: Callable[[float], None] | None
) -> Callable[[int], None]:
    """From an epoch of one stack to the share of all of them that is done."""

    def say(epoch: int) -> None:
        if progress:
            progress((stack.splits.start + len(stack.splits) * epoch / epochs) / num_splits)

    return say


@torch.no_grad()
def _train(
    stack: Stack,
    best: _Best,
    epochs: int,
    learning_rate: float,
    say: Callable[[int], None] | None = None,
) -> None:
    training = Training(stack, best.weights, learning_rate)
    for done in range(0, epochs, _ROUND):
        if say:
            say(done)
        best.update(stack, training.advance(min(_ROUND, epochs - done)), done + 1)
    if say:
        say(epochs)


def _in_blocks(values: Tensor, rows: int) -> Tensor:
    """From (groups, ..., all rows) to (groups, blocks, ..., rows of a block)."""
    return values.view(*values.shape[:-1], -1, rows).movedim(-2, 1).contiguous()


class Training:
    """Epochs on the training rows; on CUDA a round of them is recorded once and replayed, as one launch."""

    def __init__(self, stack: Stack, weights: Tensor, learning_rate: float, *, record: bool = True) -> None:
        # The starts of a split share its rows, as the splits of a group do: they are columns of one product.
        self._weights = weights.reshape(len(stack.train), -1, weights.shape[-1]).clone()
        self._train = fixed_rows(stack.train, self._weights.shape[1])
        self._shares = _in_blocks(stack.train_shares()[:, :, None, None], self._train.block)
        self._targets = _in_blocks(stack.targets(weights.shape[2])[:, :, None], self._train.block)
        self._rounds = weights.new_empty(len(weights), _ROUND, *weights.shape[1:])
        # Adam works entry by entry: one optimiser over the stacked weights is one a split and start.
        self._optimiser = Adam([([self._weights], 0.0)], learning_rate, decoupled=False)
        self._recordable, self._warm = weights.is_cuda and record, False
        self._recording: torch.cuda.CUDAGraph | None = None

    @property
    def is_recorded(self) -> bool:
        """Whether a round was recorded yet."""
        return self._recording is not None

    def advance(self, epochs: int) -> Tensor:
        """Train for a round at most; the weights after each epoch, as `_Best.update` takes them."""
        if not self._recordable or epochs < _ROUND:
            self._compute(epochs)
        elif not self._warm:
            self._warm = True
            with side_stream():
                self._compute(epochs)
        else:
            if self._recording is None:
                self._recording = torch.cuda.CUDAGraph()
                self._optimiser.drop_gradients()
                with capture(self._recording):
                    self._compute(epochs)
            self._recording.replay()
        return self._rounds[:, :epochs]

    def _compute(self, epochs: int) -> None:
        shape = *self._shares.shape[:3], *self._rounds.shape[2:4], self._shares.shape[-1]
        for epoch in range(epochs):
            logits = self._train.logits(self._weights)
            chances = logits.view(shape).softmax(dim=4)
            residuals = chances.mul_(self._shares).sub_(self._targets).view_as(logits)
            self._weights.grad = self._train.gradient(residuals)
            self._optimiser.step()
            self._rounds[:, epoch] = self._weights.view_as(self._rounds[:, epoch])
