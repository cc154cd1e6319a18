"""A linear probe trained to its optimum, with its L2 strength chosen on the validation part."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from spgcl.errors import InputError
from spgcl.evaluation.checks import checked_task
from spgcl.evaluation.metrics import MEASURES
from spgcl.evaluation.minimise import Objective, minimise
from spgcl.evaluation.scores import Scores, SplitScore
from spgcl.evaluation.stacking import Stack, logits_of, nodes_of, stacks

if TYPE_CHECKING:
    from spgcl.datasets.dataset import Splits

STRENGTHS = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 3e-6, 1e-6, 1e-7)


def tuned_probe(
    embeddings: Any,
    labels: Any,
    splits: "Splits",
    *,
    metric: str = "accuracy",
    strengths: Sequence[float] = STRENGTHS,
    device: str | torch.device = "cpu",
    progress: Callable[[float], None] | None = None,
) -> Scores:
    """Score embeddings by multinomial logistic regression whose L2 strength the validation part chooses.

    Rows are divided by their L2 norm first, which makes one grid of strengths fit embeddings of any scale and
    looks at no other row. The result does not depend on a seed.

    Args:
        embeddings: One row a node.
        labels: One class a node, 0 to classes - 1; a training part may lack classes.
        splits: Training, validation and test nodes.
        metric: "accuracy", or "roc_auc" for two classes.
        strengths: Factors of half the squared weights that are added to the mean cross-entropy (C of
            scikit-learn is 1 / (strength * training rows)). Of equally good ones the strongest is kept.
        device: Where to compute.
        progress: Told now and then what share is done.
    """
    checked, values, num_classes = checked_task(embeddings, labels, splits, metric)
    if not strengths or min(strengths) <= 0:
        raise InputError(f"strengths are {list(strengths)}; give one or more positive numbers")
    ordered = sorted(strengths, reverse=True)
    vectors, targets = torch.from_numpy(checked).to(device), torch.from_numpy(values).to(device)
    vectors = torch.nn.functional.normalize(vectors)
    records: list[SplitScore] = []
    for stack in stacks(vectors, targets, splits):
        weights, biases = fit_regressions(stack, num_classes, ordered)
        logits = torch.baddbmm(
            biases.flatten(1)[:, None],
            stack.rows[:, stack.num_train :],
            weights.flatten(1, 2).transpose(1, 2),
        ).view(*stack.validation_labels.shape, len(ordered), num_classes)
        validation = MEASURES[metric](logits, stack.validation_labels)
        for place, split in enumerate(stack.splits):
            kept = int(validation[place].argmax())
            nodes = nodes_of(splits.test[split], vectors.device)
            logits = logits_of(vectors, nodes, weights[place, [kept]], biases[place, [kept]])
            test = float(MEASURES[metric](logits, targets[nodes][None])[0, 0])
            score = 100 * float(validation[place, kept])
            records.append(SplitScore(split, 0, score, 100 * test, strength=ordered[kept]))
        if progress:
            progress(len(records) / len(splits))
    return Scores.of(records, metric=metric, protocol="tuned")


def fit_regressions(
    stack: Stack,
    num_classes: int,
    strengths: Sequence[float],
    *,
    tolerance: float = 1e-6,
    iterations: int = 1000,
) -> tuple[Tensor, Tensor]:
    """Weights (splits, strengths, classes, width) and biases of every split at every strength."""
    num_splits, _, width = stack.rows.shape
    shape = (num_splits, len(strengths), num_classes, width + 1)
    start = stack.rows.new_zeros(num_splits * len(strengths), num_classes * (width + 1))
    objective = _objective(stack, shape, stack.rows.new_tensor(strengths))
    optimum = minimise(objective, start, tolerance=tolerance, iterations=iterations).view(shape)
    return optimum[..., :-1], optimum[..., -1]


def _objective(stack: Stack, shape: tuple[int, int, int, int], strengths: Tensor) -> Objective:
    rows = stack.rows[:, : stack.num_train]
    targets = stack.targets(shape[2])[:, :, None]
    scale = stack.residual_scale()[..., None]
    hot = targets > 0

    def evaluate(points: Tensor) -> tuple[Tensor, Tensor]:
        parameters = points.view(shape)
        weights, biases = parameters[..., :-1], parameters[..., -1]
        logits = torch.baddbmm(biases.flatten(1)[:, None], rows, weights.flatten(1, 2).transpose(1, 2))
        log_chances = logits.view(*rows.shape[:2], *shape[1:3]).log_softmax(dim=-1)
        losses = -(torch.where(hot, log_chances, 0).sum(dim=-1) * scale).sum(dim=1)
        residuals = (log_chances.exp() * scale[..., None] - targets).flatten(2)
        slopes = torch.bmm(residuals.transpose(1, 2), rows).view(weights.shape)
        gradients = torch.cat(
            [slopes + strengths[:, None, None] * weights, residuals.sum(dim=1).view(biases.shape)[..., None]],
            dim=-1,
        )
        values = losses + strengths / 2 * weights.square().sum(dim=(2, 3))
        return values.flatten(), gradients.view(points.shape)

    return evaluate
