"""Runs of the supervised baselines through the command line: fit, eval, embed, similar."""

import json
from pathlib import Path

import numpy as np
import pytest
from commands import answer, output, refusal
from graphs import write_csv
from pyarrow import parquet

from spgcl.cli import run
from spgcl.runs.record import load_method

QUICK = ["--steps", "6", "--set", "hidden=4", "--threads", "1"]
SCORE_KEYS = {
    *("dataset", "method", "protocol", "metric", "mean", "std", "std_over", "splits", "split_source"),
    *("task", "others", "baselines"),
}


@pytest.fixture(scope="module")
def fitted(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("supervised") / "gcn"
    assert run(["fit", "csbm-homophilic", "--method", "gcn", "--out", str(out), *QUICK]) == 0
    return out


@pytest.fixture
def own_graph(tmp_path) -> list[str]:
    """A ring of sixty nodes, their features, and two files of labels."""
    write_csv(tmp_path / "edges.csv", "", [(node, (node + 1) % 60) for node in range(60)])
    values = np.random.default_rng(0).normal(size=(60, 3)).round(3)
    write_csv(tmp_path / "features.csv", "node,a,b,c", [(node, *row) for node, row in enumerate(values)])
    for name, classes in (("labels.csv", 3), ("others.csv", 2)):
        write_csv(tmp_path / name, "node,label", [(node, node % classes) for node in range(60)])
    return [str(tmp_path / "edges.csv"), "--features", str(tmp_path / "features.csv")]


def test_the_run_records_models_and_classes(fitted):
    record = json.loads((fitted / "run.json").read_text())
    assert record["status"] == "finished" and record["steps"] == 6
    assert (record["supervision"]["models"], record["supervision"]["classes"]) == (10, 5)
    assert sorted(path.name for path in fitted.iterdir() if path.name != "eval.json") == [
        "embeddings.parquet",
        "model.safetensors",
        "run.json",
    ]
    assert load_method(fitted).classifiers.shape == (10, 4, 5)
    table = parquet.read_table(fitted / "embeddings.parquet")
    assert table.schema.field("embedding").type.list_size == 50


def test_eval_scores_each_split_by_its_own_models_predictions(fitted, capsys):
    scores = answer(capsys, "eval", fitted)
    assert scores.keys() == SCORE_KEYS
    assert scores["protocol"] == "predictions" and scores["std_over"] == "splits"
    assert [(one["split"], one["start"]) for one in scores["splits"]] == [(split, 0) for split in range(10)]
    tests = [one["test"] for one in scores["splits"]]
    assert scores["mean"] == pytest.approx(np.mean(tests)) and scores["std"] == pytest.approx(np.std(tests))
    assert json.loads((fitted / "eval.json").read_text()) == scores
    # No probe is trained on class scores, whatever protocol is asked for.
    assert answer(capsys, "eval", fitted, "--protocol", "tuned") == scores
    shown, _ = output(capsys, "eval", fitted)
    assert "own predictions" in shown and "10 splits" in shown
    assert "probe" not in shown and "k-NN" not in shown


def test_labels_that_the_models_were_not_trained_on_are_refused(fitted, tmp_path, capsys):
    labels = write_csv(tmp_path / "labels.csv", "node,label", [(node, node % 5) for node in range(1500)])
    assert "other labels or splits" in refusal(capsys, "eval", fitted, "--labels", labels)
    command = ["fit", "csbm-homophilic", "--method", "gcn", "--out", fitted, "--resume", *QUICK]
    assert "other labels or splits" in refusal(capsys, *command, "--labels", labels)


def test_embed_gives_the_same_bytes_and_the_class_scores_of_another_graph(fitted, tmp_path, capsys):
    files = [tmp_path / "again.parquet", tmp_path / "other.parquet"]
    for graph, file in zip(("csbm-homophilic", "csbm-heterophilic"), files, strict=True):
        assert answer(capsys, "embed", fitted, graph, "--out", file)["width"] == 50
    assert files[0].read_bytes() == (fitted / "embeddings.parquet").read_bytes() != files[1].read_bytes()
    assert len(answer(capsys, "similar", fitted, "7", "-k", "3")) == 3


def test_retrainings_sum_up_without_k_nn(tmp_path, capsys):
    out = tmp_path / "several"
    answer(capsys, "fit", "csbm-homophilic", "--method", "mlp", "--seeds", 2, "--out", out, *QUICK)
    scores = answer(capsys, "eval", out)
    means = [one["mean"] for one in scores["retrainings"]]
    assert len(set(means)) == 2 and scores["mean"] == pytest.approx(np.mean(means))
    assert scores["std_over"] == "retrainings" and "knn" not in scores
    assert "2 retrainings" in output(capsys, "eval", out)[0]


def test_an_own_graph_needs_labels(own_graph, tmp_path, capsys):
    out = tmp_path / "run"
    command = ["fit", *own_graph, "--method", "gcn", "--out", out, *QUICK]
    message = refusal(capsys, *command)
    assert "gcn is supervised" in message and "--labels" in message
    assert not out.exists()
    shown, notes = output(capsys, *command, "--labels", tmp_path / "labels.csv")
    assert "10 seeded stratified 10/10/80 splits" in notes and "note: gcn is supervised: 10 models" in notes
    assert shown.splitlines()[-1] == f"next: spgcl eval {out}"
    assert answer(capsys, "eval", out)["split_source"] == "seeded stratified 10/10/80"
    assert "other labels" in refusal(capsys, "eval", out, "--labels", tmp_path / "others.csv")
