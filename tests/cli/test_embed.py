"""`spgcl embed` on other graphs: feature columns by name, and the run's own way to read a graph."""

import json

import numpy as np
import pytest
from commands import answer, output, settings
from graphs import write_csv

from spgcl.cli import run

QUICK = ["--threads", "1", *settings(hidden=8)]
SHORT = ["now-short.csv", "--features", "features.csv"]
COLUMNS = ("a", "b", "c")


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A graph of 30 nodes with weights, the same with one node more, and their features."""
    monkeypatch.chdir(tmp_path)
    features = np.random.default_rng(0).normal(size=(31, 3)).round(3)
    edges = [(node, (step * node + 1) % 30, 1 + node % 3) for step in (1, 7) for node in range(30)]
    for name, rows in (("now", edges), ("later", [*edges, (30, 0, 2), (30, 4, 1)])):
        write_csv(f"{name}.csv", "source,target,strength", rows)
        write_csv(f"{name}-short.csv", "source,target", [row[:2] for row in rows])
    write_csv("features.csv", "id,a,b,c", [(node, *features[node]) for node in range(30)])
    write_csv("features-later.csv", "id,a,b,c", [(node, *row) for node, row in enumerate(features)])
    write_csv("turned.csv", "id,c,b,a", [(node, *row[::-1]) for node, row in enumerate(features)])
    write_csv("renamed.csv", "id,a,b,z", [(node, *row) for node, row in enumerate(features)])
    np.save("features-later.npy", features.astype(np.float32))
    return tmp_path


def fit(capsys, *arguments, out="run"):
    answer(capsys, "fit", *arguments, "--out", out, *QUICK)


def embed(capsys, *arguments, name="run", code=0):
    """Vectors, or the last line on stderr; and all lines on stderr."""
    found = run(["embed", name, *arguments, "--out", "out.npy", "--overwrite"])
    lines = capsys.readouterr().err.splitlines()
    assert found == code, lines
    return (np.load("out.npy") if code == 0 else lines[-1]), lines


def test_feature_columns_are_matched_by_name(files, capsys):
    fit(capsys, *SHORT)
    assert json.loads((files / "run" / "run.json").read_text())["graph"]["feature_names"] == list(COLUMNS)
    straight, notes = embed(capsys, "later-short.csv", "--features", "features-later.csv")
    assert not any("order" in line for line in notes)
    turned, notes = embed(capsys, "later-short.csv", "--features", "turned.csv")
    assert (turned == straight).all() and any("order" in line for line in notes)
    nameless, _ = embed(capsys, "later-short.csv", "--features", "features-later.npy")
    assert (nameless == straight).all()
    line, _ = embed(capsys, "later-short.csv", "--features", "renamed.csv", code=2)
    assert "later-short.csv does not fit run" in line and "'c' missing, 'z' new" in line


def test_a_run_of_an_earlier_version_has_no_names_to_compare(files, capsys):
    fit(capsys, *SHORT)
    record = json.loads((files / "run" / "run.json").read_text())
    del record["graph"]["feature_names"], record["graph"]["weighted"]
    (files / "run" / "run.json").write_text(json.dumps(record))
    embed(capsys, "later-short.csv", "--features", "renamed.csv")


def test_direction_is_the_runs(files, capsys):
    fit(capsys, *SHORT, "--directed")
    own, notes = embed(capsys, *SHORT)
    assert "note: --directed as in run" in notes
    given, notes = embed(capsys, *SHORT, "--directed")
    assert (own == given).all() and not any("as in run" in line for line in notes)
    fit(capsys, *SHORT, out="both-ways")
    other, _ = embed(capsys, *SHORT, name="both-ways")
    assert not np.allclose(own, other)
    line, _ = embed(capsys, *SHORT, "--directed", name="both-ways", code=2)
    assert "both-ways was trained on an undirected graph" in line and "--directed" in line
    line, _ = embed(capsys, "csbm-homophilic", code=2)
    assert "csbm-homophilic does not fit run" in line and "undirected" in line


def test_weights_are_the_runs(files, capsys):
    fit(capsys, "now.csv", "--features", "features.csv", "--weight", "strength")
    own, notes = embed(capsys, "now.csv", "--features", "features.csv")
    assert "note: --weight strength as in run" in notes
    fit(capsys, "now.csv", "--features", "features.csv", "--weight", "none", out="plain")
    plain, notes = embed(capsys, "now.csv", "--features", "features.csv", name="plain")
    assert any("now.csv" in line and "'strength'" in line for line in notes)
    assert not np.allclose(own, plain)
    short, _ = embed(capsys, *SHORT, name="plain")
    assert (short == plain).all()
    line, _ = embed(capsys, *SHORT, code=2)
    assert "unknown column 'strength'" in line and "--weight strength as in run" in line
    _, notes = embed(capsys, *SHORT, "--weight", "none")
    assert any("now-short.csv has no edge weights" in line for line in notes)


def test_structural_features_are_the_runs_and_mix_with_no_others(files, capsys):
    fit(capsys, "now-short.csv", "--structural", "degree")
    vectors, notes = embed(capsys, "later-short.csv")
    assert vectors.shape == (31, 8) and "note: --structural degree as in run" in notes
    for option, value in (("--features", "features-later.csv"), ("--structural", "spectral")):
        line, _ = embed(capsys, "later-short.csv", option, value, code=2)
        assert "run was trained on --structural degree" in line and f"leave {option}" in line
    line, _ = embed(capsys, "csbm-homophilic", code=2)
    assert "csbm-homophilic brings features" in line
    fit(capsys, *SHORT, out="given")
    line, _ = embed(capsys, "later-short.csv", "--structural", "degree", name="given", code=2)
    assert "given was trained on" in line and "leave --structural degree" in line


def test_spectral_features_serve_the_runs_own_graph_only(files, capsys):
    fit(capsys, "now-short.csv", "--structural", "spectral", "--format", "npy")
    own, _ = embed(capsys, "now-short.csv")
    assert (own == np.load(files / "run" / "embeddings.npy")).all()
    # As many columns or not, another graph's eigenvectors are others.
    write_csv("rewired.csv", "source,target", [(node, (node + 1) % 30) for node in range(30)])
    for graph in ("later-short.csv", "rewired.csv"):
        line, _ = embed(capsys, graph, code=2)
        assert f"{graph} does not fit run" in line and "spectral" in line


def test_eval_notes_that_the_graph_has_changed(files, capsys):
    write_csv("labels.csv", "id,label", [(node, node % 2) for node in range(30)])
    graph = [*SHORT, "--labels", "labels.csv"]
    fit(capsys, *graph)
    fit(capsys, *graph, "--hold-out-edges", "0.1", out="held")
    changed = f"{files / 'now-short.csv'} has changed"
    for name in ("run", "held"):
        assert changed not in output(capsys, "eval", name, "--threads", 1)[1]
    with (files / "now-short.csv").open("a") as file:
        file.write("0,15\n")
    for name in ("run", "held"):
        assert changed in output(capsys, "eval", name, "--threads", 1)[1]


def test_vectors_that_are_no_numbers_are_refused_and_one_for_all_is_noted(files, capsys):
    fit(capsys, *SHORT, "--method", "spgcl", "--steps", "2", "--set", "normalise_features=false")
    np.save("huge.npy", np.full((30, 3), 3e38, np.float32))
    line, _ = embed(capsys, "now-short.csv", "--features", "huge.npy", code=2)
    assert "the embeddings are not finite" in line
    ring = [(node, (node + 1) % 30) for node in range(30)]
    write_csv("ring.csv", "source,target", ring)
    np.save("alike.npy", np.ones((30, 3), np.float32))
    vectors, notes = embed(capsys, "ring.csv", "--features", "alike.npy")
    assert (vectors == vectors[:1]).all() and any("all nodes have the same embedding" in n for n in notes)
