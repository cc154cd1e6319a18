import numpy as np
import pytest
import sklearn.metrics
import torch

from spgcl.evaluation.metrics import accuracy, adjusted_rand_index, normalised_mutual_information, roc_auc


@pytest.fixture
def padded():
    """Logits of shape (splits, rows, starts, classes) and labels, -1 at padding."""
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 2, (3, 50))
    labels[0, 40:] = -1
    labels[2, 25:] = -1
    # Rounded logits tie often.
    logits = np.round(generator.normal(size=(3, 50, 2, 2)), 0).astype(np.float32)
    return torch.from_numpy(logits), torch.from_numpy(labels)


def accuracy_reference(labels, logits):
    return sklearn.metrics.accuracy_score(labels, logits.argmax(1))


def roc_auc_reference(labels, logits):
    margins = logits[:, 1] - logits[:, 0]
    assert len(np.unique(margins)) < len(margins) / 2
    return sklearn.metrics.roc_auc_score(labels, margins)


@pytest.mark.parametrize(
    ("metric", "reference"), [(accuracy, accuracy_reference), (roc_auc, roc_auc_reference)]
)
def test_scores_equal_scikit_learn_with_ties_and_padding(padded, metric, reference):
    logits, labels = padded
    found = metric(logits, labels)
    for split in range(3):
        real = labels[split] >= 0
        for start in range(2):
            expected = reference(labels[split, real].numpy(), logits[split, real, start].numpy())
            assert found[split, start].item() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("num_rows", "num_classes", "num_clusters"),
    [(200, 5, 5), (200, 2, 9), (50, 1, 4), (50, 4, 1), (50, 1, 1), (4, 4, 4), (1, 1, 1), (2, 2, 2)],
)
def test_agreement_equals_scikit_learn(num_rows, num_classes, num_clusters):
    generator = np.random.default_rng(num_rows)
    for _ in range(10):
        classes = generator.integers(0, num_classes, num_rows)
        clusters = np.where(generator.random(num_rows) < 0.3, classes % num_clusters, num_clusters - 1)
        for first, second in ((classes, clusters), (classes, classes), (classes, np.arange(num_rows))):
            given = torch.from_numpy(first), torch.from_numpy(second)
            expected = (
                sklearn.metrics.normalized_mutual_info_score(first, second),
                sklearn.metrics.adjusted_rand_score(first, second),
            )
            found = normalised_mutual_information(*given), adjusted_rand_index(*given)
            assert found == pytest.approx(expected, abs=1e-12)
