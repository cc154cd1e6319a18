"""Splits in the words of a user: percent, folds, own masks."""

import numpy as np
import pytest
from graphs import make_graph, refusing, write_csv

from spgcl.datasets import k_fold_splits, random_splits
from spgcl.runs.splits import chosen_splits

GRAPH = make_graph(50)
LABELS = np.array([-1 if node % 10 == 9 else node % 3 for node in range(50)])


def parts_of(splits):
    return splits.train, splits.validation, splits.test


@pytest.mark.parametrize("folds", [3, 5])
def test_every_labelled_node_is_tested_once(folds):
    splits = chosen_splits(f"{folds}-fold", LABELS, GRAPH)
    for part in (splits.validation, splits.test):
        assert np.array_equal(part.sum(axis=0), LABELS >= 0)
    assert np.array_equal(sum(part.sum(axis=0) for part in parts_of(splits)), folds * (LABELS >= 0))
    for value in range(3):
        counts = splits.test[:, value == LABELS].sum(axis=1)
        assert counts.max() - counts.min() <= 1
    sizes = splits.test.sum(axis=1)
    assert sizes.max() - sizes.min() <= 1 and len(splits) == folds


def test_percent_are_seeded_stratified_splits():
    found = chosen_splits("60/20/20", LABELS, GRAPH)
    expected = random_splits(LABELS, seed=0, fractions=(0.6, 0.2, 0.2), stratified=True)
    assert all(np.array_equal(*pair) for pair in zip(parts_of(found), parts_of(expected), strict=True))


def test_own_masks_from_an_archive_a_table_and_memory(tmp_path):
    masks = [np.arange(50)[None] % 3 == part for part in range(3)]
    np.savez(tmp_path / "m.npz", train_masks=masks[0], val_masks=masks[1], test_masks=masks[2])
    rows = [(node, ("train", "Val", "test")[node % 3], "test" if node else "") for node in range(50)][::-1]
    rows[5] = (rows[5][0], rows[5][1], "train")
    rows[6] = (rows[6][0], rows[6][1], "validation")
    write_csv(tmp_path / "parts.csv", "node,first,second", rows)
    for asked in (tmp_path / "m.npz", masks, str(tmp_path / "m.npz")):
        found = chosen_splits(asked, LABELS, GRAPH)
        for part, mask in zip(parts_of(found), masks, strict=True):
            assert np.array_equal(part, mask & (LABELS >= 0))
    table = chosen_splits(tmp_path / "parts.csv", LABELS, GRAPH)
    assert len(table) == 2 and np.array_equal(table.train[0], masks[0][0] & (LABELS >= 0))
    assert np.flatnonzero(table.train[1]).tolist() == [44]
    assert np.flatnonzero(table.validation[1]).tolist() == [43] and not table.test[1, 0]


def test_what_is_refused(tmp_path):
    for words in ("60/20", "60/30/20", "0/50/50", "2-fold", "halves", "1.2.3/4/5", "60-fold"):
        with refusing(words.split("-")[0]):
            chosen_splits(words, LABELS, GRAPH)
    write_csv(tmp_path / "parts.csv", "node,part", [(0, "train"), (1, "holdout")])
    with refusing("parts.csv, row 3", "'holdout'"):
        chosen_splits(tmp_path / "parts.csv", LABELS, GRAPH)
    with refusing("(1, 3)", "50 nodes"):
        chosen_splits([np.ones(3, dtype=bool)] * 3, LABELS, GRAPH)
    np.savez(tmp_path / "m.npz", train_masks=np.ones(50))
    with refusing("m.npz", "'val_masks' is missing"):
        chosen_splits(tmp_path / "m.npz", LABELS, GRAPH)
    with refusing("2-fold"):
        k_fold_splits(LABELS, 2, seed=0)
