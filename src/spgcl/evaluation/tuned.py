"""A linear probe trained to its optimum, with its L2 strength chosen on the validation part."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from spgcl.datasets.dataset import Splits
from spgcl.engine.similarity import comparable_rows
from spgcl.errors import InputError
from spgcl.evaluation.checks import checked_task
from spgcl.evaluation.metrics import MEASURES, other_scores
from spgcl.evaluation.minimise import minimise
from spgcl.evaluation.scores import Scores, SplitScore
from spgcl.evaluation.stacking import Stack, logits_of, nodes_of, stacks

# On CPU, where batches do not pay, splits are solved one by one, so that none waits for the slowest.
MOST_BYTES = {"cpu": 1, "cuda": 2**29}
STRENGTHS = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 3e-6, 1e-6, 1e-7)


def tuned_probe(
    embeddings: Any,
    labels: Any,
    splits: Splits,
    *,
    metric: str = "accuracy",
    strengths: Sequence[float] = STRENGTHS,
    device: str | torch.device = "cpu",
    progress: Callable[[float], None] | None = None,
) -> Scores:
    """Score embeddings by multinomial logistic regression whose L2 strength the validation part chooses.

    Rows are divided by their L2 norm first, so that one grid of strengths fits embeddings of any scale. The
    result does not depend on a seed.

    Args:
        embeddings: One row per node.
        labels: One class per node, 0 to classes - 1; a training part may lack classes.
        splits: Training, validation and test nodes.
        metric: "accuracy", or "roc_auc" for two classes.
        strengths: Factors of half the squared weights that are added to the mean cross-entropy (C of
            scikit-learn is 1 / (strength * training rows)). Of equally good ones, the strongest is kept.
        device: Where to compute.
        progress: Called now and then with the fraction that is done.
    """
    vectors, targets, num_classes = checked_task(embeddings, labels, splits, metric, device)
    if not strengths or min(strengths) <= 0:
        raise InputError(f"strengths are {list(strengths)}; give one or more positive numbers")
    ordered = sorted(strengths, reverse=True)
    vectors = torch.nn.functional.normalize(comparable_rows(vectors))
    records: list[SplitScore] = []
    for stack in stacks(vectors, targets, splits, len(ordered) * num_classes, MOST_BYTES):
        parameters = fit_regressions(stack, num_classes, ordered, vectors.shape[1])
        logits = stack.validation @ parameters.flatten(1, 2).transpose(1, 2)
        logits = logits.view(*logits.shape[:2], len(ordered), num_classes)
        validation = MEASURES[metric](logits, stack.validation_labels)
        weights, biases = parameters[..., : vectors.shape[1]], parameters[..., vectors.shape[1]]
        for index, split in enumerate(stack.splits):
            kept = int(validation[index].argmax())
            nodes = nodes_of(splits.test[split], vectors.device)
            logits = logits_of(vectors, nodes, weights[index, [kept]], biases[index, [kept]])
            test = float(MEASURES[metric](logits, targets[nodes][None])[0, 0])
            score = 100 * float(validation[index, kept])
            (others,) = other_scores(logits, targets[nodes][None], metric)
            records.append(SplitScore(split, 0, score, 100 * test, strength=ordered[kept], others=others))
        if progress:
            progress(len(records) / len(splits))
    return Scores.of(records, metric=metric, protocol="tuned")


def fit_regressions(
    stack: Stack,
    num_classes: int,
    strengths: Sequence[float],
    width: int,
    *,
    tolerance: float = 1e-6,
    iterations: int = 1000,
) -> Tensor:
    """Weights of every split at every strength, shape (splits, strengths, classes, padded width).

    The rows of the stack have `width` columns before the one that the bias is multiplied with. A regression
    is finished if the largest gradient entry, in scaled weights, is within the tolerance.
    """
    axes = _principal_axes(stack.train[..., :width].double()).to(stack.train)
    rows = torch.cat([stack.train[..., :width] @ axes, stack.train[..., width:]], dim=2)
    problem = _Regressions(stack, rows, num_classes, stack.train.new_tensor(strengths), axes.shape[2])
    start = torch.zeros_like(problem.scales).flatten(2)
    optimum = minimise(problem, start, tolerance=tolerance, iterations=iterations).view_as(problem.scales)
    weights = optimum / problem.scales
    back = axes.repeat_interleave(len(weights) // len(axes), dim=0)[:, None].transpose(2, 3)
    return torch.cat([weights[..., : axes.shape[2]] @ back, weights[..., axes.shape[2] :]], dim=3)


def _principal_axes(rows: Tensor) -> Tensor:
    """Orthonormal axes (groups, width, axes) that span the rows of each group.

    The penalty is the same for rotated weights, and the best weights lie in the span of the rows. In
    principal axes the curvature is nearly diagonal, so that fewer steps reach the minimum.
    """
    if rows.shape[1] < rows.shape[2]:
        span: Tensor = torch.linalg.qr(rows.transpose(1, 2)).Q
        return span @ _principal_axes(rows @ span)
    energies, axes = torch.linalg.eigh(rows.transpose(1, 2) @ rows)
    # Axes that hold only float32 rounding errors become zero.
    held = energies > torch.finfo(torch.float32).eps ** 2 * energies.amax(dim=1, keepdim=True)
    axes *= held[:, None]
    return torch.as_tensor(axes)


class _Regressions:
    """Penalised mean cross-entropy over training parts, in weights scaled by the root of its curvature."""

    def __init__(self, stack: Stack, rows: Tensor, num_classes: int, strengths: Tensor, width: int) -> None:
        self._rows, self._row_weights = rows, stack.row_weights()[:, :, None, None]
        self._targets = stack.targets(num_classes)[:, :, None]
        # Biases have no penalty.
        self._penalties = strengths[:, None, None].repeat(1, num_classes, rows.shape[2])
        self._penalties[..., width] = 0
        squares = (self._row_weights.flatten(2) @ rows.square()).flatten(0, 1)
        # A probability times its complement is at most a quarter.
        self.scales = (squares[:, None, None] / 4 + self._penalties).sqrt()

    def __call__(self, points: Tensor, problems: Tensor) -> tuple[Tensor, Tensor]:
        """Values and gradients of all splits at some strengths."""
        scales, penalties = self.scales[:, problems], self._penalties[problems]
        weights = points.view_as(scales) / scales
        groups, members, num_classes = len(self._rows), self._targets.shape[1], scales.shape[2]
        logits = weights.view(groups, -1, scales.shape[3]) @ self._rows.transpose(1, 2)
        log_probabilities = logits.view(groups, members, -1, num_classes, logits.shape[2]).log_softmax(dim=3)
        losses = -(log_probabilities * self._targets).sum(dim=(3, 4)).flatten(0, 1)
        residuals = log_probabilities.exp_().mul_(self._row_weights).sub_(self._targets).flatten(1, 3)
        gradients = (residuals @ self._rows).view_as(weights)
        values = losses + (penalties * weights.square()).sum(dim=(2, 3)) / 2
        return values, (gradients.addcmul_(penalties, weights) / scales).flatten(2)
