import numpy as np
import pyarrow as pa
import pytest
import torch
from graphs import refusing
from pyarrow import parquet

from spgcl.graph import Graph
from spgcl.io import read_labels
from spgcl.io.labels import number_labels


def with_ids(ids):
    return Graph.from_edges(np.array([0, 1]), np.array([1, 2]), np.eye(3), node_ids=np.array(ids))


@pytest.fixture
def named():
    return with_ids(["c", "a", "b"])


COLOURS, PEOPLE = ([30, 10, 20], ("blue", "red")), (["c", "a", "b"], ("bot", "human"))


@pytest.mark.parametrize(
    ("graph", "name", "text", "options"),
    [
        (COLOURS, "l.csv", "id,label\n10,red\n20,blue\n30,red\n", {}),
        (COLOURS, "l.csv", "10,red\n20,blue\n30,red\n", {}),
        (COLOURS, "l.tsv", "label\tnode\nred\t10\nblue\t20\nred\t30\n", {"id_column": "node"}),
        (COLOURS, "l.txt", "10 red\n20 blue\n# a comment\n30 red\n", {}),
        (COLOURS, "l.txt", "red 10\nblue 20\nred 30\n", {"id_column": "column 2"}),
        # A class called as its column leaves a header a header.
        (PEOPLE, "l.csv", "id,bot\nc,human\na,human\nb,bot\n", {}),
        (PEOPLE, "l.csv", "user,bot\nc,human\na,human\nb,bot\n", {}),
        (PEOPLE, "l.csv", "bot,user\nhuman,c\nhuman,a\nbot,b\n", {"id_column": "column 2"}),
        (PEOPLE, "l.txt", "user bot\nc human\na human\nb bot\n", {}),
        (PEOPLE, "l.csv", "c,human\na,human\nb,bot\n", {}),
        (PEOPLE, "l.csv", "human,c\nhuman,a\nbot,b\n", {"id_column": "column 2"}),
    ],
)
def test_tables_are_put_in_the_graphs_order(tmp_path, graph, name, text, options):
    ids, names = graph
    (tmp_path / name).write_text(text)
    labels, classes = read_labels(tmp_path / name, with_ids(ids), **options)
    assert labels.dtype == np.int64 and labels.tolist() == [1, 1, 0] and classes == names


def test_id_is_a_header_where_a_node_is_called_so_too(tmp_path):
    (tmp_path / "l.csv").write_text("id,bot\nid,human\na,human\nb,bot\n")
    labels, classes = read_labels(tmp_path / "l.csv", with_ids(["a", "b", "id"]))
    assert labels.tolist() == [1, 0, 1] and classes == ("bot", "human")


def test_classes_of_numbers_sort_as_numbers(tmp_path, named):
    (tmp_path / "l.csv").write_text("id,label\na,10\nb,9\nc,-2\n")
    labels, classes = read_labels(tmp_path / "l.csv", named)
    assert labels.tolist() == [0, 2, 1] and classes == ("-2", "9", "10")


@pytest.mark.parametrize("cell", ["", " ", "?", "NaN", "nan", "-1"])
@pytest.mark.parametrize("classes", [("3", "5"), ("blue", "red")], ids="-".join)
def test_cells_that_name_no_class_leave_a_node_without_a_label(tmp_path, named, cell, classes):
    (tmp_path / "l.csv").write_text(f"id,label\nc,{classes[1]}\na,{cell}\nb,{classes[0]}\n")
    labels, names = read_labels(tmp_path / "l.csv", named)
    assert labels.tolist() == [1, -1, 0] and names == classes


@pytest.mark.parametrize(
    "column",
    [
        pa.array([7, None, 4]),
        pa.array([7.0, float("nan"), 4.0]),
        pa.array([7.0, None, 4.0]),
        pa.array(["7", None, "4"]),
        pa.array([7, -1, 4]),
    ],
    ids=["null", "nan", "null of floats", "null of texts", "minus one"],
)
def test_parquet_cells_without_a_label(tmp_path, named, column):
    parquet.write_table(pa.table({"id": ["c", "a", "b"], "y": column}), tmp_path / "l.parquet")
    labels, names = read_labels(tmp_path / "l.parquet", named)
    assert labels.tolist() == [1, -1, 0] and names == ("4", "7")


@pytest.mark.parametrize("kind", [pa.string_view(), pa.large_string()])
def test_d12_parquet_text_of_any_type(tmp_path, named, kind):
    ids, colours = (pa.array(values).cast(kind) for values in (["c", "a", "b"], ["red", "", "blue"]))
    parquet.write_table(pa.table({"id": ids, "y": colours}), tmp_path / "l.parquet")
    labels, names = read_labels(tmp_path / "l.parquet", named)
    assert (labels.tolist(), names) == ([1, -1, 0], ("blue", "red"))
    edges = {"source": ids, "target": pa.array(["a", "b", "c"]).cast(kind)}
    parquet.write_table(pa.table(edges), tmp_path / "e.parquet")
    assert Graph.of(tmp_path / "e.parquet", structural="degree").num_edges == 3


def test_parquet_and_arrays(tmp_path, named):
    parquet.write_table(pa.table({"id": ["a", "b", "c"], "y": [1.0, 2.0, 1.0]}), tmp_path / "l.parquet")
    assert read_labels(tmp_path / "l.parquet", named)[0].tolist() == [0, 0, 1]
    for values in ([5, 3, 5], [5.0, 3.0, 5.0], ["x", "b", "x"], [True, False, True]):
        np.save(tmp_path / "l.npy", np.array(values))
        assert read_labels(str(tmp_path / "l.npy"), with_ids([0, 1, 2]))[0].tolist() == [1, 0, 1]


def test_rows_of_an_array_are_node_numbers(tmp_path, named):
    np.save(tmp_path / "l.npy", np.array([5, 3, 5]))
    assert read_labels(tmp_path / "l.npy", with_ids([1, 0, 2]))[0].tolist() == [0, 1, 1]
    for graph, node in ((named, "'c'"), (with_ids([1, 2, 3]), "1")):
        with refusing("nodes 0 to 2", f"such as {node}", "id column"):
            read_labels(tmp_path / "l.npy", graph)
    np.save(tmp_path / "l.npy", np.array([7.0, np.nan, 4.0]))
    assert read_labels(tmp_path / "l.npy", with_ids([2, 1, 0]))[0].tolist() == [0, -1, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,y\na,1\nb,2\n", "l.csv: no label for node c (1 missing)"),
        ("id,y\na,?\nb,\nc,nan\n", "l.csv: no node has a label"),
        ("id,y\na,?\nb,4\nc,4\n", "l.csv: all nodes have the label 4"),
        ("id,y\na,1\nb,2\nc,1\nd,1\n", "l.csv, row 5: node 'd' is not in the graph"),
        ("id,y\na,1\nb,2\nc,1\na,2\n", "l.csv, row 5: node 'a' again, first in row 2"),
        ("id,y\na,1\nb,1\nc,1\n", "l.csv: all nodes have the label 1"),
        ("id,y,z\na,1,2\n", "l.csv: expected one column of labels besides 'id', found 'y', 'z'"),
        ("id\na\nb\n", "l.csv: expected one column of labels besides 'id', found none"),
        ("", "l.csv: holds no rows"),
    ],
)
def test_broken_tables(tmp_path, named, text, message):
    (tmp_path / "l.csv").write_text(text)
    with refusing(message):
        read_labels(tmp_path / "l.csv", named)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.array([1, 2]), "l.npy: labels of shape (2,), but the graph has 3 nodes"),
        (np.array([1.0, 0.5, 2]), "l.npy, row 1: 0.5 is not a class"),
        (np.array([1.0, np.inf, 2]), "l.npy, row 1: inf is not a class"),
        (np.array([1, 2, 3j]), "l.npy: labels of type complex128"),
        (np.array([None, 1, 2], dtype=object), "l.npy: not a readable NumPy file"),
    ],
)
def test_broken_arrays(tmp_path, values, message):
    np.save(tmp_path / "l.npy", values, allow_pickle=True)
    with refusing(message):
        read_labels(tmp_path / "l.npy", with_ids([0, 1, 2]))


def test_other_files_are_refused(tmp_path, named):
    with refusing("absent.csv: no such file"):
        read_labels(tmp_path / "absent.csv", named)
    (tmp_path / "l.json").write_text("{}")
    with refusing("l.json", "'.json'", ".csv, ", ".npy"):
        read_labels(tmp_path / "l.json", named)


class NA:
    """Reads as pandas' NA does."""

    def __repr__(self):
        return "<NA>"


@pytest.mark.parametrize(
    ("given", "labels", "names"),
    [
        ([1, -1, 1], [1, 0, 1], ("-1", "1")),
        ([-2, -1, 0], [0, 1, 2], ("-2", "-1", "0")),
        (["no", "-1", "no"], [1, 0, 1], ("-1", "no")),
        ([4, -1, 10**9], [0, -1, 1], ("4", "1000000000")),
        ([7.0, np.nan, 4.0], [1, -1, 0], ("4", "7")),
        (["x", "?", "b"], [1, -1, 0], ("b", "x")),
        ([4, None, 7], [0, -1, 1], ("4", "7")),
        (["x", None, "None"], [1, -1, 0], ("None", "x")),
        (torch.tensor([True, False, True]), [1, 0, 1], ("False", "True")),
        ([7, NA(), 4], [1, -1, 0], ("4", "7")),
        (np.array(["x", "", "b"], dtype=object), [1, -1, 0], ("b", "x")),
    ],
)
def test_labels_in_memory_follow_the_rules_of_files(given, labels, names):
    found, classes = number_labels(given, 3, origin="y")
    assert found.dtype == np.int64 and found.tolist() == labels and classes == names


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([1, 2], "y has shape (2,), but the graph has 3 nodes"),
        ([None, None, None], "y: no node has a label"),
        ([0, 0, 0], "y: all nodes have the label 0"),
        ([-1, -1, -1], "y: all nodes have the label -1"),
        ([1, 0.5, 2], "y, row 1: 0.5 is not a class"),
        ([None, 0.5, 2], "y, row 1: 0.5 is not a class"),
        ([None, {}, 2], "y: labels of type object"),
    ],
)
def test_labels_in_memory_that_are_refused(given, message):
    with refusing(message):
        number_labels(given, 3, origin="y")
