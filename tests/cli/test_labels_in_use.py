"""Labels on the command line: nodes without one, and those that a saved graph brings along."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from commands import answer, output, refusal, settings
from graphs import write_csv
from torch_geometric.data import Data

from spgcl.cli import run
from spgcl.errors import InputError
from spgcl.evaluation.health import class_centre_distance, selected_homophily
from spgcl.runs.options import GraphOptions
from spgcl.runs.sources import resolve

QUICK = [
    *("--method", "spgcl", "--threads", "1"),
    *settings(hidden=8, pool_size=20, seeds=8, hops=1, positives=3, negatives=4, steps=2),
]
FIT = ["fit", "edges.csv", "--structural", "degree", "--out", "run", *QUICK]
DEGREE = GraphOptions(structural="degree")
NUM_NODES = 60


@pytest.fixture
def edges(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pairs = [(node, (step * node + 1) % NUM_NODES) for step in (1, 7) for node in range(NUM_NODES)]
    write_csv("edges.csv", "source,target", pairs)
    return np.array(pairs)


def write_labels(cells):
    write_csv("labels.csv", "id,label", enumerate(cells))


@pytest.fixture
def partly_labelled(edges):
    write_labels(["" if node % 4 == 3 else "xyz"[node % 3] for node in range(NUM_NODES)])


def test_nodes_without_a_label_are_in_no_split_and_are_counted(partly_labelled, notes):
    loaded = resolve("edges.csv", DEGREE, "labels.csv")
    assert len(notes) == 1 and "labels.csv: 15 of 60 nodes" in notes[0]
    splits, bare = loaded.splits, loaded.labels < 0
    assert np.count_nonzero(bare) == 15
    assert (splits.train | splits.validation | splits.test)[:, ~bare].all()
    assert not (splits.train | splits.validation | splits.test)[:, bare].any()


@pytest.mark.parametrize(
    ("rare", "expected"),
    [
        ({"odd": 3}, ["'odd';", "(3)"]),
        ({"a": 2, "b": 4}, ["'a', 'b';", "(6)"]),
        (dict.fromkeys("abcdefg", 1), ["'a', 'b', 'c', 'd', 'e' and 2 more;", "(7)"]),
    ],
)
def test_classes_too_small_to_be_trained_on_are_named(edges, notes, rare, expected):
    small = [name for name, count in rare.items() for _ in range(count)]
    write_labels([*small, *("xy"[node % 2] for node in range(NUM_NODES - len(small)))])
    assert resolve("edges.csv", DEGREE, Path("labels.csv")).splits is not None
    assert "in no training part" in notes[-1] and all(part in notes[-1] for part in expected)


def test_labels_may_call_their_ids_otherwise_than_features(partly_labelled, notes):
    write_csv("features.csv", "node,a", [(node, node) for node in range(NUM_NODES)])
    options = GraphOptions(features=Path("features.csv"), id="node")
    expected = resolve("edges.csv", options, Path("labels.csv")).labels
    rows = [line.split(",")[::-1] for line in Path("labels.csv").read_text().splitlines()[1:]]
    write_csv("turned.csv", "label,node", rows)
    assert np.array_equal(resolve("edges.csv", options, Path("turned.csv")).labels, expected)


@pytest.mark.parametrize("heading", [("name", "kind"), ("n0", "kind")])
def test_a_header_that_could_be_a_row_is_one_where_it_names_the_ids(edges, heading):
    names = [f"n{node}" for node in range(NUM_NODES)]
    write_csv("named.csv", "source,target", [(f"n{one}", f"n{two}") for one, two in edges])
    write_csv("features.csv", f"{heading[0]},a", [(name, 1) for name in names])
    write_csv("labels.txt", ",".join(heading), [(name, "xy"[index % 2]) for index, name in enumerate(names)])
    options = GraphOptions(features=Path("features.csv"), id=heading[0])
    assert np.array_equal(np.unique(resolve("named.csv", options, Path("labels.txt")).labels), [0, 1])


def test_a_column_is_not_guessed_beside_features_without_names(partly_labelled):
    np.save("features.npy", np.eye(NUM_NODES))
    options = GraphOptions(features=Path("features.npy"), id="node")
    with pytest.raises(InputError, match=r"labels\.csv: .*'node'"):
        resolve("edges.csv", options, Path("labels.csv"))


def test_labels_without_columns_or_without_a_file_take_a_column_of_features(partly_labelled):
    write_csv("features.csv", "node,a", [(node, node) for node in range(NUM_NODES)])
    options = GraphOptions(features=Path("features.csv"), id="node")
    np.save("labels.npy", np.arange(NUM_NODES) % 3)
    assert resolve("edges.csv", options, Path("labels.npy")).labels.tolist() == [0, 1, 2] * 20
    with pytest.raises(InputError, match=r"none\.csv: no such file"):
        resolve("edges.csv", options, Path("none.csv"))


def test_a_column_that_no_file_has_is_refused(partly_labelled):
    with pytest.raises(InputError, match=r"labels\.csv: .*'node'.* id, label"):
        resolve("edges.csv", GraphOptions(structural="degree", id="node"), Path("labels.csv"))


def test_labels_given_to_a_finished_run_are_those_it_is_evaluated_with(partly_labelled, capsys):
    answer(capsys, *FIT)
    assert answer(capsys, "eval", "run")["verdict"]
    before = Path("run/embeddings.parquet").stat().st_mtime_ns
    answer(capsys, *FIT, "--resume", "--labels", "labels.csv")
    assert Path("run/embeddings.parquet").stat().st_mtime_ns == before
    assert answer(capsys, "eval", "run")["metric"] == "accuracy"
    # Without labels on the command line the run keeps them, and its scores.
    answer(capsys, *FIT, "--resume")
    assert Path("run/eval.json").exists()
    answer(capsys, "eval", "run")
    # Scores of other labels are removed; the column of their ids is kept with them.
    write_csv("turned.csv", "kind,node", [("ab"[node % 2], node) for node in range(NUM_NODES)])
    answer(capsys, *FIT, "--resume", "--labels", "turned.csv", "--id", "node")
    assert not Path("run/eval.json").exists()
    answer(capsys, "eval", "run")
    answer(capsys, *FIT, "--resume", "--labels", "labels.csv")
    answer(capsys, "eval", "run")


@pytest.mark.parametrize("failing", ["write_embeddings", "save_method"])
def test_a_run_whose_files_cannot_be_written_is_resumed_with_its_labels(
    partly_labelled, monkeypatch, capsys, failing
):
    def fail_to_write(*_):
        raise OSError(28, "no space left", "run")

    with monkeypatch.context() as broken:
        broken.setattr(f"spgcl.runs.fit.{failing}", fail_to_write)
        assert "no space left" in refusal(capsys, *FIT, "--labels", "labels.csv")
    assert json.loads(Path("run/run.json").read_text())["status"] == "running"
    answer(capsys, *FIT, "--resume")
    assert Path("run/model.safetensors").exists()
    answer(capsys, "eval", "run")


def test_scores_that_cannot_be_kept_are_shown(partly_labelled, capsys):
    answer(capsys, *FIT, "--labels", "labels.csv")
    # A folder of that name: root may write even without permission.
    Path("run/eval.json").mkdir()
    assert run(["eval", "run", "--json"]) == 2
    shown = capsys.readouterr()
    assert "mean" in json.loads(shown.out) and "eval.json cannot be written" in shown.err


@pytest.mark.parametrize("given", [QUICK, ["--method", "gcn", "--threads", "1", "--steps", "2"]])
def test_a_partly_labelled_graph_goes_all_the_way(partly_labelled, capsys, given):
    graph = ["edges.csv", "--structural", "degree", "--labels", "labels.csv"]
    answer(capsys, "fit", *graph, "--observe", 1, "--out", "run", *given)
    scores = answer(capsys, "eval", "run", "--threads", 1)
    assert 0 <= scores["mean"] <= 100 and len(scores["splits"]) == 10
    record = answer(capsys, "inspect", *graph)
    assert record["unlabelled_nodes"] == 15 and record["class_counts"] == [15, 15, 15]


def test_curves_leave_out_nodes_without_a_label():
    generator = torch.Generator().manual_seed(0)
    vectors = torch.randn(40, 4, generator=generator)
    labels = torch.randint(0, 3, (40,), generator=generator)
    known = torch.rand(40, generator=generator) < 0.6
    partly = torch.where(known, labels, -1)
    assert class_centre_distance(vectors, partly) == class_centre_distance(vectors[known], labels[known])
    assert selected_homophily(vectors, partly, 3) == selected_homophily(vectors[known], labels[known], 3)


def test_minus_one_as_a_class_is_noted(edges, notes):
    write_labels([1 if node % 2 else -1 for node in range(NUM_NODES)])
    loaded = resolve("edges.csv", DEGREE, "labels.csv")
    assert loaded.class_names == ("-1", "1")
    assert any("labels.csv: -1 is taken as a class" in note for note in notes)


def saved_graph(edges, **fields):
    generator = torch.Generator().manual_seed(0)
    features = torch.rand(NUM_NODES, 3, generator=generator)
    torch.save(Data(x=features, edge_index=torch.from_numpy(edges.T), **fields), "data.pt")


def test_labels_and_masks_of_a_saved_graph_serve_evaluation(edges, capsys):
    nodes = torch.arange(NUM_NODES)
    masks = {"train_mask": nodes < 20, "val_mask": (nodes >= 20) & (nodes < 40), "test_mask": nodes >= 40}
    saved_graph(edges, y=nodes % 3, **masks)
    _, notes = output(capsys, "fit", "data.pt", "--out", "run", *QUICK)
    assert "y of data.pt" in notes and "labels and masks" in notes and "--labels" in notes
    scores = answer(capsys, "eval", "run", "--threads", 1)
    assert scores["split_source"] == "stored" and {score["split"] for score in scores["splits"]} == {0}
    # Labels that are given come before those of the file.
    write_labels(["left" if node % 2 else "right" for node in range(NUM_NODES)])
    scores = answer(capsys, "eval", "run", "--labels", "labels.csv", "--threads", 1)
    assert scores["split_source"] == "seeded stratified 10/10/80"
    assert resolve("data.pt", None, "labels.csv").class_names == ("left", "right")


def test_labels_of_a_saved_graph_that_cannot_be_used_are_named(edges, notes):
    saved_graph(edges, y=torch.eye(NUM_NODES))
    assert resolve("data.pt").labels is None
    assert len(notes) == 1 and "data.pt are not used: y of shape (60, 60)" in notes[0]
    mask = torch.arange(NUM_NODES) < 30
    saved_graph(edges, y=torch.arange(NUM_NODES) % 3, train_mask=mask, val_mask=mask, test_mask=~mask)
    assert resolve("data.pt").labels is None
    assert "are not used: a node is in two parts of one split" in notes[1]


def test_a_saved_graph_that_is_only_embedded_is_not_searched_for_labels(edges, capsys):
    saved_graph(edges, y=torch.arange(NUM_NODES) % 3)
    answer(capsys, "fit", "data.pt", "--out", "run", *QUICK)
    assert "labels" not in output(capsys, "embed", "run", "data.pt", "--out", "vectors.npy")[1]
