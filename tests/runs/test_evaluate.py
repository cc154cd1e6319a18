"""What stands beside a score, and evaluations as they are asked for."""

import json
from collections import Counter

import numpy as np
import pytest
from commands import answer, output, refusal, settings
from graphs import write_csv

from spgcl.datasets import random_splits
from spgcl.evaluation import majority_class, probe
from spgcl.report.words import judgement

NUM_NODES = 60
QUICK = ["--threads", 1, *settings(hidden=8)]


@pytest.fixture
def fitted(tmp_path, monkeypatch, capsys):
    """A run on a graph whose features tell the column `kind` of its labels, and nothing about `coin`."""
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    pairs = [(node, (step * node + 3) % NUM_NODES) for step in (1, 7) for node in range(NUM_NODES)]
    write_csv("edges.csv", "source,target", pairs)
    kinds = np.arange(NUM_NODES) % 3
    features = generator.normal(size=(NUM_NODES, 4)) + 4 * np.eye(4)[kinds]
    write_csv("features.csv", "id,a,b,c,d", [(n, *row) for n, row in enumerate(features.round(3))])
    coins = generator.random(NUM_NODES) < 0.2
    rows = [("xyz"[kinds[n]], n, "heads" if coins[n] else "tails") for n in range(NUM_NODES)]
    write_csv("labels.csv", "kind,node,coin", rows)
    answer(capsys, "fit", "edges.csv", "--features", "features.csv", "--out", "run", *QUICK)
    return tmp_path / "run"


KIND = ["--labels", "labels.csv", "--id", "node", "--label", "kind", "--threads", 1]
COIN = ["--labels", "labels.csv", "--id", "node", "--label", "coin", "--threads", 1]


@pytest.mark.parametrize("metric", ["accuracy", "balanced_accuracy", "macro_f1", "roc_auc"])
def test_the_majority_class_is_the_most_frequent_of_the_training_nodes(metric):
    labels = np.array([0] * 30 + [1] * 70)[np.random.default_rng(0).permutation(100)]
    splits = random_splits(labels, seed=0)
    found = majority_class(labels, splits, metric=metric)
    for score, train, test in zip(found.splits, splits.train, splits.test, strict=True):
        (most, _), *_ = Counter(labels[train].tolist()).most_common(1)
        right = float(np.mean(labels[test] == most))
        f1 = np.mean([2 * right / (1 + right), 0])
        expected = {"accuracy": right, "balanced_accuracy": 0.5, "macro_f1": f1, "roc_auc": 0.5}
        assert score.test == pytest.approx(100 * expected[metric])


def test_baselines_stand_beside_every_score(fitted, capsys):
    record = answer(capsys, "eval", fitted, *KIND)
    rows = record["baselines"]
    assert list(rows) == ["majority", "raw", "smoothed"] and rows["raw"]["mean"] > 60
    assert rows["majority"]["mean"] == pytest.approx(100 / 3, abs=3)
    assert record["others"].keys() == {"balanced_accuracy", "macro_f1"}
    tests = [score["others"]["macro_f1"] for score in record["splits"]]
    assert record["others"]["macro_f1"] == pytest.approx(np.mean(tests))
    shown, _ = output(capsys, "eval", fitted, *KIND)
    for words in ("majority class", "raw features", "smoothed features", "macro-F1", judgement(record)[0]):
        assert words in shown


def test_a_score_that_is_not_above_the_majority_class_is_called_that(fitted, capsys):
    record = answer(capsys, "eval", fitted, *COIN)
    assert record["mean"] <= record["baselines"]["majority"]["mean"]
    (words,) = judgement(record)
    assert words.startswith("Not above the majority class")
    better = {**record, "mean": 99.0}
    assert "Not above" not in judgement(better)[0]


def test_the_metric_decides_what_is_chosen_and_reported(fitted, capsys):
    record = answer(capsys, "eval", fitted, *COIN, "--metric", "balanced_accuracy", "--splits", "5-fold")
    assert (record["metric"], len(record["splits"])) == ("balanced_accuracy", 5)
    assert record["baselines"]["majority"]["mean"] == pytest.approx(50) and "macro_f1" in record["others"]
    assert record["split_source"] == "seeded stratified 5-fold"
    assert "roc_auc needs two classes" in refusal(capsys, "eval", fitted, *KIND, "--metric", "roc_auc")


def test_only_some_parts_are_computed(fitted, capsys):
    record = answer(capsys, "eval", fitted, *KIND, "--only", "knn,clustering")
    assert {"knn", "clustering"} <= set(record) and not {"mean", "baselines"} & set(record)
    assert "baselines" not in answer(capsys, "eval", fitted, *KIND, "--only", "probe")
    assert "'knnn'" in refusal(capsys, "eval", fitted, "--only", "knnn")
    for parts in ("knn", "clustering", "knn,probe"):
        shown, _ = output(capsys, "eval", fitted, *KIND, "--only", parts)
        assert ("10 splits" in shown) == ("knn" in parts)
    for parts in ("links", "baselines", "reliability"):
        assert f"--only {parts}" in refusal(capsys, "eval", fitted, *KIND, "--only", parts)
    assert "--only probe" in refusal(capsys, "eval", fitted, "--only", "probe")


def test_columns_of_labels_are_named(fitted, capsys):
    assert "--label" in refusal(capsys, "eval", fitted, "--labels", "labels.csv", "--id", "node")
    assert "'colour'" in refusal(capsys, "eval", fitted, *KIND[:4], "--label", "colour")
    assert "--labels FILE" in refusal(capsys, "eval", fitted, "--label", "kind")
    assert "'node'" in refusal(capsys, "eval", fitted, *KIND[:4], "--label", "node")
    fit = ["fit", "edges.csv", "--features", "features.csv", "--out", "other", *QUICK]
    refusal(capsys, *fit, "--labels", "labels.csv", "--label", "kind")
    write_csv("kinds.csv", "id,kind,coin", [(n, "xyz"[n % 3], n % 2) for n in range(NUM_NODES)])
    answer(capsys, *fit, "--labels", "kinds.csv", "--label", "kind")
    assert answer(capsys, "eval", "other", "--threads", 1)["baselines"]["raw"]["mean"] > 60
    # The same file, another column.
    assert answer(capsys, "eval", "other", "--label", "coin", "--threads", 1)["metric"] == "accuracy"


def test_the_page_uses_the_evaluation_of_the_same_labels(fitted, capsys):
    answer(capsys, "eval", fitted, *KIND, "--splits", "60/20/20", "--only", "probe")
    before = (fitted / "eval.json").read_bytes()
    report = ["report", fitted, "--projection", "pca", "--threads", 1]
    answer(capsys, *report)
    assert (fitted / "eval.json").read_bytes() == before
    # Other splits are asked for by giving the labels alone.
    write_csv("kinds.csv", "id,kind", [(n, "xyz"[n % 3]) for n in range(NUM_NODES)])
    answer(capsys, *report, "--labels", "kinds.csv")
    stored = json.loads((fitted / "eval.json").read_text())
    assert stored["split_source"] == "seeded stratified 10/10/80"
    before = (fitted / "eval.json").stat().st_mtime_ns
    answer(capsys, *report, "--labels", "kinds.csv")
    assert (fitted / "eval.json").stat().st_mtime_ns == before


def test_other_metrics_of_a_probe_are_of_the_same_classifiers():
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 2, 80)
    vectors = generator.normal(size=(80, 5)) + labels[:, None]
    splits = random_splits(labels, seed=0, fractions=(0.4, 0.3, 0.3), count=2)
    found = probe(vectors, labels, splits, epochs=30)
    balanced = probe(vectors, labels, splits, epochs=30, metric="balanced_accuracy")
    assert balanced.splits[0].others.keys() == {"macro_f1"}
    assert 40 < found.others["balanced_accuracy"] < 100
