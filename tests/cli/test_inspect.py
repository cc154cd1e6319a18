import json

import numpy as np
import pytest
from commands import answer, output, refusal
from graphs import write_csv

from spgcl.errors import InputError
from spgcl.runs.options import GraphOptions
from spgcl.runs.sources import resolve


@pytest.fixture
def files(tmp_path):
    """A ring of people with features and labels, each in its own CSV."""
    people = [f"person-{number}" for number in range(40)]
    write_csv(tmp_path / "edges.csv", "from,to", zip(people, [*people[1:], people[0]], strict=True))
    rows = [(person, position % 2, position / 40) for position, person in enumerate(people)]
    write_csv(tmp_path / "features.csv", "id,a,b", rows)
    labels = [(person, "left" if position % 2 else "right") for position, person in enumerate(people)]
    write_csv(tmp_path / "labels.csv", "id,side", labels)
    return tmp_path


def test_a_built_in_data_set(capsys):
    record = answer(capsys, "inspect", "csbm-heterophilic")
    assert record["name"] == "csbm-heterophilic"
    assert record["nodes"] > 100
    assert record["edge_homophily"] < 0.5
    assert 0 <= record["transformed"]["homophily"] <= 1


def test_a_csv_with_text_ids_and_labels(capsys, files):
    given = ["--features", files / "features.csv", "--labels", files / "labels.csv"]
    shown, notes = output(capsys, "inspect", files / "edges.csv", *given, "--json")
    record = json.loads(shown)
    assert (record["name"], record["nodes"], record["edges"]) == ("edges", 40, 40)
    assert record["class_names"] == ["left", "right"]
    assert record["class_counts"] == [20, 20]
    assert record["edge_homophily"] == 0
    assert record["notes"]
    for remark in record["notes"]:
        assert f"note: {remark}" in notes


def test_people_get_a_table_and_the_notes_on_stderr(capsys, files):
    given = ["--features", files / "features.csv", "--directed", "--labels", files / "labels.csv"]
    out, _ = output(capsys, "inspect", files / "edges.csv", *given)
    assert "40 directed" in out
    assert "2 (left: 20, right: 20)" in out
    assert "edge homophily         0.000" in out


def test_a_file_without_suffix_needs_its_folder(capsys, files, monkeypatch):
    monkeypatch.chdir(files)
    (files / "edges.csv").rename("ring")
    assert "./ring" in refusal(capsys, "inspect", "ring")


def test_a_data_set_brings_its_labels_splits_and_metric():
    loaded = resolve("csbm-homophilic")
    assert loaded.path is None
    assert loaded.splits is loaded.published
    assert len(loaded.labels) == loaded.graph.num_nodes


def test_labels_without_splits_get_seeded_stratified_ones_and_a_note(notes, files):
    loaded = resolve(
        str(files / "edges.csv"), GraphOptions(features=files / "features.csv"), files / "labels.csv"
    )
    assert loaded.name == "edges"
    assert loaded.path == files / "edges.csv"
    assert not notes
    splits = loaded.splits
    assert len(notes) == 1 and "10 seeded stratified 10/10/80 splits" in notes[0]
    assert loaded.splits is splits
    for mask in splits.train:
        assert np.bincount(loaded.labels[mask]).tolist() == [2, 2]


def test_too_few_labels_for_splits_are_refused(tmp_path):
    (tmp_path / "edges.csv").write_text("a,b\n0,1\n1,2\n")
    (tmp_path / "labels.csv").write_text("id,label\n0,0\n1,1\n2,1\n")
    loaded = resolve(str(tmp_path / "edges.csv"), GraphOptions(structural="degree"), tmp_path / "labels.csv")
    with pytest.raises(InputError, match="the largest has 2"):
        _ = loaded.splits


def test_a_graph_without_labels_has_no_splits(files):
    assert resolve(str(files / "edges.csv"), GraphOptions(features=files / "features.csv")).splits is None
