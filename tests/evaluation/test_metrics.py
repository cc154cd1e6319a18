import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score, roc_auc_score

from spgcl.evaluation.metrics import accuracy, roc_auc


@pytest.fixture
def padded():
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 2, (3, 50))
    labels[0, 40:] = -1
    labels[2, 25:] = -1
    # Rounded logits tie often.
    logits = np.round(generator.normal(size=(3, 50, 2, 2)), 0).astype(np.float32)
    return torch.from_numpy(logits), torch.from_numpy(labels)


def test_roc_auc_equals_scikit_learn_with_ties_and_padding(padded):
    logits, labels = padded
    found = roc_auc(logits, labels)
    for split in range(3):
        real = labels[split] >= 0
        for start in range(2):
            margins = (logits[split, real, start, 1] - logits[split, real, start, 0]).numpy()
            assert len(np.unique(margins)) < len(margins) / 2
            assert found[split, start].item() == pytest.approx(roc_auc_score(labels[split, real], margins))


def test_accuracy_counts_real_rows_only(padded):
    logits, labels = padded
    found = accuracy(logits, labels)
    for split in range(3):
        real = labels[split] >= 0
        for start in range(2):
            expected = accuracy_score(labels[split, real], logits[split, real, start].argmax(1))
            assert found[split, start].item() == pytest.approx(expected)
