from dataclasses import replace

import numpy as np
import pytest
import torch
from graphs import seeded
from made_tasks import make_splits, make_task
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize

from spgcl.errors import InputError
from spgcl.evaluation import tuned_probe
from spgcl.evaluation.minimise import minimise
from spgcl.evaluation.stacking import stacks
from spgcl.evaluation.tuned import fit_regressions

STRENGTHS = [1e-1, 1e-3, 1e-5]


def regressions_and_references(task, splits, **settings):
    """Class probabilities of each regression here and of scikit-learn's, in float64."""
    embeddings, labels = normalize(task[0]).astype(np.float64), task[1]
    rows = torch.from_numpy(embeddings).to(settings.pop("dtype"))
    width = rows.shape[1]
    (stack,) = stacks(rows, torch.from_numpy(labels), splits, 4 * len(STRENGTHS))
    parameters = fit_regressions(stack, 4, STRENGTHS, width, **settings)
    weights, biases = parameters[..., :width], parameters[..., width]
    for split, train in enumerate(splits.train):
        for index, strength in enumerate(STRENGTHS):
            reference = LogisticRegression(C=1 / (strength * train.sum()), tol=1e-10, max_iter=100_000)
            expected = reference.fit(embeddings[train], labels[train]).predict_proba(embeddings)
            found = (rows @ weights[split, index].T + biases[split, index]).softmax(dim=1)
            yield strength, found.numpy(), expected


def wide_task():
    """More columns than rows, and a second split that trains on the rows of the first."""
    splits = make_splits(300, [(60, 50), (60, 50)])
    train, validation = splits.train[[0, 0]], splits.validation & ~splits.train[0]
    splits = replace(splits, train=train, validation=validation, test=~train & ~validation)
    return make_task(num_nodes=300, width=200), splits


@pytest.mark.parametrize("wide", [False, True])
def test_every_split_and_strength_reaches_scikit_learns_optimum(task, uneven_splits, wide):
    task, splits = wide_task() if wide else (task, uneven_splits)
    pairs = regressions_and_references(task, splits, dtype=torch.float64, tolerance=1e-8)
    for _, found, expected in pairs:
        np.testing.assert_allclose(found, expected, atol=2e-4)


def test_the_settings_of_the_probe_come_close_to_the_optimum(task, uneven_splits):
    for strength, found, expected in regressions_and_references(task, uneven_splits, dtype=torch.float32):
        # A gradient of this size means a larger error if the penalty, and so the curvature, is small.
        np.testing.assert_allclose(found, expected, atol=1e-3 if strength >= 1e-3 else 1e-2)


def test_the_strength_is_the_best_on_validation(task, uneven_splits):
    scores = tuned_probe(*task, uneven_splits, strengths=STRENGTHS)
    single = [tuned_probe(*task, uneven_splits, strengths=[strength]) for strength in STRENGTHS]
    for split, score in enumerate(scores.splits):
        alone = [one.splits[split] for one in single]
        assert score.validation == pytest.approx(max(one.validation for one in alone))
        # Strongest first, so the first of equals is the strongest.
        chosen = max(alone, key=lambda one: one.validation)
        assert (score.strength, score.test) == (chosen.strength, pytest.approx(chosen.test))
    assert scores.protocol == "tuned"
    assert scores.std_over == "splits"


def test_the_scale_of_the_embeddings_does_not_matter(task, uneven_splits):
    embeddings, labels = task
    first, second = (tuned_probe(factor * embeddings, labels, uneven_splits) for factor in (1, 1024))
    assert first == second
    for factor in (1e-20, 1e20):
        assert tuned_probe(factor * embeddings, labels, uneven_splits).mean == pytest.approx(
            first.mean, abs=0.5
        )


def test_roc_auc_is_measured_for_two_classes():
    embeddings, labels = make_task(num_classes=2, noise=1)
    scores = tuned_probe(embeddings, labels, make_splits(300, [(100, 100)]), metric="roc_auc")
    assert 90 < scores.mean <= 100
    assert str(scores).endswith("ROC-AUC over 1 split")


@pytest.mark.parametrize("strengths", [[], [1e-3, 0]])
def test_strengths_must_be_positive(task, uneven_splits, strengths):
    with pytest.raises(InputError, match="strengths"):
        tuned_probe(*task, uneven_splits, strengths=strengths)


def test_progress_rises_to_the_end(task, uneven_splits):
    reported: list[float] = []
    tuned_probe(*task, uneven_splits, strengths=[1e-2], progress=reported.append)
    assert reported == sorted(reported)
    assert reported[-1] == 1


def test_minimise_finds_the_minimum_of_each_row():
    generator = seeded(0)
    # From well to badly conditioned quadratics, one per row.
    scales = torch.stack([torch.logspace(0, power, 30, dtype=torch.float64) for power in (0, 2, 4)])
    targets = torch.randn(3, 30, dtype=torch.float64, generator=generator)

    evaluated = []

    def quadratic(points, problems):
        evaluated.append(problems.tolist())
        offsets = points - targets[problems]
        return (scales[problems] * offsets.square()).sum(dim=2) / 2, scales[problems] * offsets

    found = minimise(quadratic, torch.zeros_like(targets)[None], tolerance=1e-8, iterations=500)
    torch.testing.assert_close(found[0], targets, atol=1e-6, rtol=0)
    # Finished problems are no longer evaluated.
    assert evaluated[0] == [0, 1, 2]
    assert evaluated[-1] == [2]
