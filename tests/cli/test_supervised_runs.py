"""Runs of the supervised baselines through the command line: fit, eval, embed, similar, kill and resume."""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet

from spgcl.cli import run
from spgcl.runs.record import load_method

SPGCL = str(Path(sys.executable).with_name("spgcl"))
QUICK = ["--steps", "6", "--set", "hidden=4", "--threads", "1"]
SCORE_KEYS = {
    *("dataset", "method", "protocol", "metric", "mean", "std", "std_over", "splits", "split_source", "task")
}


def answer(capsys, *arguments: object) -> dict:
    code = run([*map(str, arguments), "--json"])
    captured = capsys.readouterr()
    assert code == 0, captured.err
    return json.loads(captured.out)


def refusal(capsys, *arguments: object) -> str:
    assert run([*map(str, arguments)]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1
    return captured.err


@pytest.fixture(scope="module")
def fitted(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("supervised") / "gcn"
    assert run(["fit", "csbm-homophilic", "--method", "gcn", "--out", str(out), *QUICK]) == 0
    return out


@pytest.fixture
def own_graph(tmp_path) -> list[str]:
    """A ring of sixty nodes, their features, and labels beside them."""
    (tmp_path / "edges.csv").write_text("".join(f"{node},{(node + 1) % 60}\n" for node in range(60)))
    values = np.random.default_rng(0).normal(size=(60, 3)).round(3)
    rows = "".join(f"{node},{a},{b},{c}\n" for node, (a, b, c) in enumerate(values.tolist()))
    (tmp_path / "features.csv").write_text("node,a,b,c\n" + rows)
    for name, classes in (("labels.csv", 3), ("others.csv", 2)):
        lines = "".join(f"{node},{node % classes}\n" for node in range(60))
        (tmp_path / name).write_text("node,label\n" + lines)
    return [str(tmp_path / "edges.csv"), "--features", str(tmp_path / "features.csv")]


def test_the_run_says_what_it_is(fitted):
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
    assert run(["eval", str(fitted)]) == 0
    shown = capsys.readouterr().out
    assert "own predictions" in shown and "10 splits" in shown
    assert "probe" not in shown and "k-NN" not in shown


def test_labels_that_the_models_were_not_trained_on_are_refused(fitted, tmp_path, capsys):
    labels = tmp_path / "labels.csv"
    labels.write_text("node,label\n" + "".join(f"{node},{node % 5}\n" for node in range(1500)))
    assert run(["eval", str(fitted), "--labels", str(labels)]) == 2
    assert "trained with other labels or splits; evaluate with the same" in capsys.readouterr().err
    command = ["fit", "csbm-homophilic", "--method", "gcn", "--out", str(fitted), "--resume", *QUICK]
    assert run([*command, "--labels", str(labels)]) == 2
    assert "was trained with other labels or splits; resume with the same" in capsys.readouterr().err


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
    assert run(["eval", str(out)]) == 0
    assert "2 retrainings" in capsys.readouterr().out


def test_an_own_graph_needs_labels(own_graph, tmp_path, capsys):
    out = tmp_path / "run"
    command = ["fit", *own_graph, "--method", "gcn", "--out", out, *QUICK]
    message = refusal(capsys, *command)
    assert "gcn is supervised and" in message and "has no labels; give them by --labels FILE" in message
    assert not out.exists()
    assert run([*map(str, command), "--labels", str(tmp_path / "labels.csv")]) == 0
    captured = capsys.readouterr()
    assert "10 seeded stratified 10/10/80 splits are used" in captured.err
    assert "note: gcn is supervised: 10 models are trained on labels" in captured.err
    assert captured.out.splitlines()[-1] == f"next: spgcl eval {out}"
    assert answer(capsys, "eval", out)["split_source"] == "seeded stratified 10/10/80"
    assert run(["eval", str(out), "--labels", str(tmp_path / "others.csv")]) == 2
    assert "trained with other labels" in capsys.readouterr().err


def test_killed_and_resumed_gives_the_same_bytes(tmp_path, capsys):
    command = [
        *("fit", "csbm-heterophilic", "--method", "gcn", "--steps", "120", "--set", "hidden=16"),
        *("--threads", "1", "--device", "cpu", "--json"),
    ]
    out, whole = tmp_path / "killed", tmp_path / "whole"
    process = subprocess.Popen(
        [SPGCL, *command, "--out", str(out), "--checkpoint-every", "0.05"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    for _ in range(3000):
        if (out / "checkpoint.safetensors").exists():
            break
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert json.loads((out / "run.json").read_text())["status"] == "running"
    assert run([*command, "--out", str(whole)]) == 0
    capsys.readouterr()
    assert run([*command, "--out", str(out), "--resume"]) == 0
    assert 0 < json.loads(capsys.readouterr().out)["resumed_from"] < 120
    for name in ("embeddings.parquet", "model.safetensors"):
        assert (out / name).read_bytes() == (whole / name).read_bytes()


def test_methods_by_name_say_what_settings_mean_and_which_graphs_have_presets(capsys):
    assert run(["methods", "grace", "raw"]) == 0
    text = capsys.readouterr().out
    assert re.search(r"^temperature +0\.7 +float +What similarities are divided by \(tau\)\.$", text, re.M)
    assert "\npreset published: cora, citeseer, pubmed, " in text
    assert "raw: " in text and "spgcl: " not in text
    assert run(["methods", "grace", "--json"]) == 0
    assert [method["name"] for method in json.loads(capsys.readouterr().out)] == ["grace"]
    assert run(["methods", "grac"]) == 2
    assert "did you mean 'grace'" in capsys.readouterr().err


def test_methods_says_which_need_labels(capsys):
    assert run(["methods", "--json"]) == 0
    methods = json.loads(capsys.readouterr().out)
    assert [method["name"] for method in methods if method["supervised"]] == ["mlp", "gcn"]
    assert run(["methods"]) == 0
    assert "gcn (supervised): Two graph convolutions" in capsys.readouterr().out
