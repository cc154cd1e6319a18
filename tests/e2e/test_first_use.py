"""What somebody meets on the first day, through the command line, in an empty folder."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from commands import SPGCL, answer, output, settings
from graphs import write_csv
from pyarrow import csv, parquet

import spgcl
from spgcl.cli import run
from spgcl.evaluation import split_half
from spgcl.runs.options import DEFAULT_METHOD

QUICK = ["--threads", "1", *settings(hidden=8)]
FIT_KEYS = ["run", "dataset", "method", "steps", "resumed_from", "seconds", "peak_memory_mib"]
EVAL_KEYS = {
    *("dataset", "method", "protocol", "metric", "mean", "std", "std_over", "splits", "split_source"),
    *("knn", "clustering", "task", "others", "baselines"),
}
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f]")


def process(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # Colours are what a terminal would be offered; a pipe gets none even so.
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"}
    return subprocess.run(
        [SPGCL, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )


@pytest.fixture(scope="module")
def first(tmp_path_factory) -> Path:
    """A folder in which `spgcl fit` ran as a process of its own, its output read by nobody."""
    folder = tmp_path_factory.mktemp("first")
    done = process(folder, "fit", *QUICK)
    assert done.returncode == 0, done.stderr
    (folder / "stdout.txt").write_text(done.stdout)
    (folder / "stderr.txt").write_text(done.stderr)
    return folder


@pytest.fixture
def fitted(first) -> Path:
    return first / "runs" / "csbm-heterophilic-auto-0"


def test_fit_needs_no_argument_and_prints_the_next_command(first, fitted):
    text = (first / "stdout.txt").read_text()
    lines = text.splitlines()
    assert lines[0] == "auto on csbm-heterophilic"
    # Nothing is trained: there are no steps and there is no loss to show.
    assert lines[1].split()[:2] == ["run", "prepare"]
    assert lines[2].split()[0] == "runs/csbm-heterophilic-auto-0"
    assert lines[3:-1] == split_half(spgcl.load("csbm-heterophilic"))["verdict"]
    assert lines[-1] == "next: spgcl eval runs/csbm-heterophilic-auto-0"
    assert not CONTROL.search(text)
    assert (first / "stderr.txt").read_text() == ""


def test_the_run_folder_holds_the_weights_the_embeddings_and_the_record(first, fitted):
    assert (
        {"run.json", "model.safetensors", "embeddings.parquet"}
        <= {path.name for path in fitted.iterdir()}
        <= {"run.json", "model.safetensors", "embeddings.parquet", "eval.json"}
    )
    assert len({path.stat().st_mode for path in fitted.iterdir()}) == 1
    record = json.loads((fitted / "run.json").read_text())
    assert record["status"] == "finished" and record["seed"] == 0 and record["threads"] == 1
    assert record["graph"]["digest"] == spgcl.load("csbm-heterophilic").graph.digest
    assert record["settings"] == {"hidden": 8} and record["method"] == DEFAULT_METHOD
    assert record["versions"]["spgcl"] == spgcl.__version__
    assert record["command"] == ["spgcl", "fit", *QUICK]
    assert record["history"]["loss"] == [] and record["findings"]["verdict"]
    assert record["seconds"].keys() == {"prepare", "train", "embed"}
    table = parquet.read_table(fitted / "embeddings.parquet")
    assert table.column_names == ["node", "embedding", "x", "y"] and table.num_rows == 1500
    assert str(table.schema.field("embedding").type) == "fixed_size_list<element: float>[8]"


def test_fit_eval_similar_and_embed_answer_in_json(fitted, tmp_path, capsys):
    fit = answer(capsys, "fit", "--out", tmp_path / "run", *QUICK)
    assert list(fit) == FIT_KEYS
    command = json.loads((tmp_path / "run" / "run.json").read_text())["command"]
    assert command == ["spgcl", "fit", "--out", str(tmp_path / "run"), *QUICK, "--json"]
    assert fit["run"] == str(tmp_path / "run") and fit["dataset"] == "csbm-heterophilic"
    assert (fit["method"], fit["steps"], fit["resumed_from"]) == ("auto", 0, None)
    assert list(fit["seconds"]) == ["prepare", "train", "embed"] and fit["peak_memory_mib"] > 0
    # In this process as in its own: the same command, the same bytes.
    for name in ("embeddings.parquet", "model.safetensors"):
        assert (tmp_path / "run" / name).read_bytes() == (fitted / name).read_bytes()

    scores = answer(capsys, "eval", fitted, "--threads", 1)
    assert scores.keys() == EVAL_KEYS
    assert (scores["protocol"], scores["metric"], scores["std_over"]) == ("paper", "accuracy", "splits")
    assert scores["split_source"] == "seeded stratified 10/10/80"
    tests = [score["test"] for score in scores["splits"]]
    assert len(tests) == 10 and scores["mean"] == pytest.approx(np.mean(tests))
    assert scores["std"] == pytest.approx(np.std(tests))
    assert 15 < scores["mean"] < 100 and scores["clustering"].keys() == {"nmi", "ari"}
    assert json.loads((fitted / "eval.json").read_text()) == scores

    near = answer(capsys, "similar", fitted, "17", "-k", 4)
    assert [list(row) for row in near] == [["node", "similarity"]] * 4
    similarities = [row["similarity"] for row in near]
    assert similarities == sorted(similarities, reverse=True) and 17 not in [row["node"] for row in near]
    vectors = np.stack(parquet.read_table(fitted / "embeddings.parquet").column("embedding").to_numpy())
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    expected = np.delete(vectors @ vectors[17], 17)
    assert similarities == pytest.approx(np.sort(expected)[::-1][:4], abs=1e-5)

    file = tmp_path / "again.parquet"
    assert answer(capsys, "embed", fitted, "csbm-heterophilic", "--out", file) == {
        "run": str(fitted),
        "file": str(file),
        "nodes": 1500,
        "width": 8,
    }
    assert file.read_bytes() == (fitted / "embeddings.parquet").read_bytes()


def test_eval_with_other_labels(fitted, tmp_path, capsys):
    sides = [(node, "odd" if node % 2 else "even") for node in range(1500)]
    parity = write_csv(tmp_path / "parity.csv", "node,side", sides)
    scores, notes = output(capsys, "eval", fitted, "--labels", parity, "--threads", 1, "--json")
    assert notes.startswith("note: ") and "10 seeded stratified 10/10/80 splits" in notes
    assert notes.count("\n") == 1
    # Parity has nothing to do with the graph.
    assert 40 < json.loads(scores)["mean"] < 60


def test_people_get_tables_without_control_characters(fitted, capsys):
    for arguments, expected in (
        (["eval", str(fitted), "--threads", "1"], "paper's probe"),
        (["similar", str(fitted), "3", "-k", "2"], "node  similarity"),
        (["methods"], "negative_weight"),
        (["inspect", "csbm-heterophilic"], "transformed homophily"),
    ):
        text, _ = output(capsys, *arguments)
        assert expected in text and not CONTROL.search(text)


def test_a_run_is_scored_where_mps_is_asked_for(fitted, capsys, monkeypatch):
    expected = answer(capsys, "eval", fitted, "--device", "cpu", "--threads", "1")
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert answer(capsys, "eval", fitted, "--device", "mps", "--threads", "1")["mean"] == expected["mean"]


def test_another_format_holds_the_same_numbers(fitted, tmp_path, capsys):
    vectors = np.stack(parquet.read_table(fitted / "embeddings.parquet").column("embedding").to_numpy())
    for name, files in (("npy", {"embeddings.npy", "nodes.txt"}), ("csv", {"embeddings.csv"})):
        out = tmp_path / name
        answer(capsys, "fit", "--out", out, "--format", name, *QUICK)
        assert {path.name for path in out.iterdir()} == {"run.json", "model.safetensors", *files}
        assert len(answer(capsys, "similar", out, "0", "-k", 3)) == 3
        answer(capsys, "embed", out, "csbm-heterophilic", "--out", tmp_path / f"own.{name}")
        assert (tmp_path / f"own.{name}").read_bytes() == (out / f"embeddings.{name}").read_bytes()
    assert (np.load(tmp_path / "npy" / "embeddings.npy") == vectors).all()
    assert (tmp_path / "npy" / "nodes.txt").read_text().split() == [str(node) for node in range(1500)]
    assert (tmp_path / "own.nodes.txt").read_bytes() == (tmp_path / "npy" / "nodes.txt").read_bytes()
    table = csv.read_csv(tmp_path / "csv" / "embeddings.csv")
    assert table.column("node").to_pylist() == list(range(1500))
    columns = [table.column(f"embedding_{column}").to_numpy() for column in range(8)]
    assert np.stack(columns, axis=1) == pytest.approx(vectors, rel=1e-6)


def test_the_same_command_gives_the_same_bytes_and_another_seed_others(tmp_path, capsys):
    out = tmp_path / "run"
    path = out / "embeddings.parquet"
    trained = ["--method", "spgcl", "--steps", 10, *QUICK, *settings(pool_size=64, seeds=16, hops=1)]
    answer(capsys, "fit", "--out", tmp_path / "first", *trained)
    first = (tmp_path / "first" / "embeddings.parquet").read_bytes()
    answer(capsys, "fit", "--out", out, "--seed", 1, *trained)
    assert path.read_bytes() != first
    (out / "eval.json").write_text("of the run before")
    (out / "mine.txt").write_text("not of a run")
    answer(capsys, "fit", "--out", out, "--overwrite", *trained)
    assert path.read_bytes() == first
    assert not (out / "eval.json").exists() and (out / "mine.txt").exists()


def test_version_and_help_come_quickly_and_without_torch(first):
    version, help_ = process(first, "--version"), process(first, "--help")
    assert (version.stdout, version.stderr, version.returncode) == (f"spgcl {spgcl.__version__}\n", "", 0)
    assert help_.returncode == 0 and help_.stderr == "" and not CONTROL.search(help_.stdout)
    for command in COMMANDS:
        assert f" {command} " in help_.stdout


COMMANDS = (
    "fit",
    "eval",
    "compare",
    "embed",
    "similar",
    "inspect",
    "methods",
    "report",
    "datasets",
    "theory",
)
HELP = f"from spgcl.cli import run\nfor name in {COMMANDS}: assert run([name, '--help']) == 0"
LATE = {"torch_geometric", "sklearn", "pyarrow", "networkx", "plotly", "umap", "tensorboard", "spgcl.methods"}


@pytest.mark.parametrize(
    ("code", "late"), [("import spgcl", LATE), (HELP, LATE | {"torch", "scipy"})], ids=["import", "help"]
)
def test_slow_imports_wait_for_their_first_use(code, late):
    command = [sys.executable, "-X", "importtime", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "spgcl" in imported and not imported & late


@pytest.mark.parametrize("arguments", [[], ["datasets"]], ids=["nothing", "datasets"])
def test_a_command_that_is_missing_shows_the_help(arguments, capsys):
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert "Usage: spgcl" in captured.out
    assert captured.err == f"spgcl: no command given (see {' '.join(['spgcl', *arguments])} --help)\n"
