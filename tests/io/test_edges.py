import gzip
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from graphs import arcs_of, refusing, write_csv
from pyarrow import parquet

from spgcl.errors import InputError
from spgcl.io import read_graph


@pytest.fixture
def write(tmp_path):
    def write(name, text):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
        return path

    return write


def edges_of(graph):
    ids = graph.node_ids.tolist()
    found = {(ids[start], ids[end]): value for (start, end), value in arcs_of(graph).items()}
    return found if graph.directed else {pair: value for pair, value in found.items() if pair[0] < pair[1]}


def read(path, **options):
    return read_graph(path, structural="degree", **options)


SMALL = {(0, 5): 1, (5, 7): 1}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("headed.csv", "source,target\n0,5\n5,7\n"),
        ("named.csv", "here,there\n0,5\n5,7\n"),
        ("headerless.csv", "0,5\n5,7\n"),
        ("no-last-newline.csv", "0,5\n5,7"),
        ("windows.csv", "a,b\r\n0,5\r\n5,7\r\n"),
        ("old-mac.csv", "a,b\r0,5\r5,7\r"),
        ("marked.csv", "\ufeffa,b\n0,5\n5,7\n"),
        ("semicolon.csv", "a;b\n0;5\n5;7\n"),
        ("blanks.csv", "a,b\n0, 5\n\n 5,7\n\n"),
        ("quoted.csv", '"a","b"\n"0","5"\n"5","7"\n'),
        ("tabs.tsv", "a\tb\n0\t5\n5\t7\n"),
        ("spaces.txt", "  0   5 \n5 \t 7\n"),
        ("comments.edges", "# a comment, with commas\n#another\n0 5\n  # in between\n5 7\n"),
        ("packed.txt.gz", gzip.compress(b"0 5\n5 7\n", mtime=0)),
        ("packed-unsaid.csv", gzip.compress(b"0,5\n5,7\n", mtime=0)),
    ],
)
def test_layouts_of_text(write, name, text):
    graph = read(write(name, text))
    assert graph.node_ids.tolist() == [0, 5, 7]
    assert edges_of(graph) == SMALL


def test_a_semicolon_within_a_cell_separates_nothing(write):
    for text in ("a;1,b\nb,c\n", "a;1\tb\nb\tc\n"):
        assert read(write("e.txt", text)).node_ids.tolist() == ["a;1", "b", "c"]
    assert read(write("e.txt", "0;0,5\n1;2\n")).node_ids.tolist() == ["0", "0,5", "1", "2"]
    assert read(write("e.txt", "a;1,2b\n2b,c\n")).node_ids.tolist() == ["2b", "a;1", "c"]


def test_parquet_with_integers_text_and_categories(tmp_path):
    texts = pa.array(["0", "5"]).dictionary_encode()
    parquet.write_table(
        pa.table({"a": [0, 5], "b": pa.array([5, 7], pa.int32())}), tmp_path / "numbers.parquet"
    )
    parquet.write_table(pa.table({"a": texts, "b": ["5", "7"]}), tmp_path / "texts.parquet")
    assert edges_of(read(tmp_path / "numbers.parquet")) == SMALL
    assert edges_of(read(tmp_path / "texts.parquet")) == SMALL


def test_text_ids_are_sorted_and_kept_as_written(write):
    graph = read(write("e.csv", "from,to\nzoë,007\n007, anna smith \n"))
    assert graph.node_ids.tolist() == ["007", "anna smith", "zoë"]


def test_zero_padded_ids_stay_text(write):
    assert read(write("e.csv", "01,2\n1,2\n")).node_ids.tolist() == ["01", "1", "2"]


def test_ids_beyond_64_bits_stay_text(write):
    assert read(write("e.txt", f"1 {10**20}\n")).node_ids.tolist() == ["1", str(10**20)]


def test_quoted_ids_may_hold_commas_and_line_breaks(write):
    graph = read(write("e.csv", 'source,target\n"Smith, J","two\nlines"\n'))
    assert graph.node_ids.tolist() == ["Smith, J", "two\nlines"]


def test_a_first_row_of_text_that_occurs_below_is_an_edge(write):
    graph = read(write("e.csv", "to,be\nbe,not\n"))
    assert edges_of(graph) == {("be", "to"): 1, ("be", "not"): 1}
    assert "e.csv: first row (to, be) read as data, not as column names" in graph.notes


def test_a_first_row_of_unknown_text_is_a_header_in_csv_only_and_noted(write):
    graph = read(write("e.csv", "user,friend\na,b\n"))
    assert "e.csv: first row (user, friend) read as column names" in graph.notes
    graph = read(write("e.txt", "user friend\na b\n"))
    assert graph.num_edges == 2 and "first row (user, friend) read as data" in graph.notes[0]


def test_usual_names_are_a_header_without_a_note(write):
    graph = read(write("e.txt", "src dst\na b\n"))
    assert graph.num_edges == 1 and not any("first row" in note for note in graph.notes)


def test_comments_are_counted_in_the_notes(write):
    graph = read(write("e.csv", "a,b\n#python,#java\nc,d\n"))
    assert "e.csv: 1 lines that begin with # read as comments" in graph.notes


@pytest.mark.parametrize(
    ("name", "text", "options"),
    [
        ("named.csv", "a,b,Weight\n0,5,2\n5,7,.5\n", {}),
        ("third.txt", "0 5 2\n5 7 0.5\n", {}),
        ("chosen.csv", "a,b,w\n0,5,2\n5,7, 5e-1\n", {"weight_column": "w"}),
        ("moved.csv", "weight,b,a\n2,5,0\n.5,7,5\n", {"source_column": "a", "target_column": "b"}),
        ("first.csv", "weight,a,b\n2,0,5\n.5,5,7\n", {}),
        ("first-chosen.csv", "w,a,b\n2,0,5\n.5,5,7\n", {"weight_column": "w"}),
        (
            "numbered.txt",
            "9 0 5 2\n9 5 7 .5\n",
            {"source_column": "column 2", "target_column": "column 3", "weight_column": "column 4"},
        ),
    ],
)
def test_weights_are_used_and_noted(write, name, text, options):
    graph = read(write(name, text), **options)
    assert edges_of(graph) == {(0, 5): 2, (5, 7): 0.5}
    assert any("used as edge weights" in note for note in graph.notes)


@pytest.mark.parametrize(
    ("name", "text", "column"),
    [
        ("named.csv", "a,b,Weight\n0,5,2\n5,7,.5\n", "'Weight'"),
        ("third.txt", "0 5 2\n5 7 0.5\n", "'column 3'"),
        ("no-numbers.txt", "0 5 {}\n5 7 {}\n", "'column 3'"),
        ("negative.csv", "a,b,weight\n0,5,-2\n5,7,0\n", "'weight'"),
        ("two.csv", "a,b\n0,5\n5,7\n", None),
    ],
)
def test_weights_are_ignored_on_request(write, name, text, column):
    graph = read(write(name, text), weight_column="none")
    assert edges_of(graph) == SMALL and graph.weights is None
    ignored = [note for note in graph.notes if "ignored" in note]
    assert ignored == ([f"{name}: columns ignored: {column}"] if column else [])


def test_direction_is_kept_on_request(write):
    path = write("e.csv", "a,b,weight\n5,0,2\n0,5,3\n5,0,4\n5,7,1\n")
    assert edges_of(read(path, directed=True)) == {(5, 0): 6, (0, 5): 3, (5, 7): 1}
    assert edges_of(read(path)) == {(0, 5): 6, (5, 7): 1}


def test_other_columns_than_named_ends_are_ignored_with_a_note(write):
    path = write("e.csv", "since,b,a\n1999,5,0\n2001,7,5\n")
    graph = read(path, source_column="a", target_column="b")
    assert edges_of(graph) == SMALL
    assert "e.csv: columns ignored: 'since'" in graph.notes


def test_one_named_end_takes_the_first_other_column(write):
    assert edges_of(read(write("e.csv", "b,a\n5,0\n7,5\n"), source_column="a")) == SMALL


BROKEN = [
    ("e.csv", "", {}, "holds no rows"),
    ("e.csv", "# only\n# comments\n", {}, "holds no rows"),
    # Space for a regular expression, and a cell for a reader of tables.
    ("e.csv", "\x0b", {}, "no rows below"),
    ("e.csv", "source,target\n", {}, "('source', 'target') but no rows"),
    ("e.csv", "user,friend\n", {}, "('user', 'friend') but no rows"),
    ("e.tsv", "user\tfriend\tsince\n# no rows\n", {}, "('user', 'friend', 'since') but no rows"),
    ("e.txt", "source target\n", {}, "('source', 'target') but no rows"),
    ("e.csv", "0,1\n1,2\n\n2,3,4\n", {}, "e.csv, row 4: expected 2 cells, found 3"),
    ("e.txt", "#c\n0 1\n1\n", {}, "e.txt, row 3: expected 2 cells, found 1"),
    ("e.csv", 'a,b\n0,1\n"2,3\n', {}, "e.csv, row 3: expected 2 cells, found 1"),
    ("e.csv", "a,b\n0,1\n2,\n", {}, "row 3, column 'b': the id is missing"),
    ("e.csv", "a\n0\n1\n", {}, "too few columns", "('a')"),
    ("e.csv", "a,b,c\n0,1,x\n", {}, "columns 'c'", "--source a --target b"),
    ("e.csv", "a,b,c,d\n0,1,x,2\n", {}, "columns 'c', 'd'", "--source a --target b", "--weight d"),
    ("e.csv", "a,b,w,since\n0,1,1,2\n", {"weight_column": "w"}, "columns 'since'", "--target b"),
    ("e.txt", "0 1 2 3\n1 2 3 4\n", {}, "columns 'column 3', 'column 4'", "--source 'column 1'"),
    ("e.txt", "0 1 {}\n1 2 {}\n", {}, "row 1, column 'column 3': '{}'", "--weight none"),
    *(
        ("e.txt", f"0;1;{cell}\n1;2;1\n", {}, f"row 1, column 'column 3': {cell.strip(chr(34))!r} is not")
        for cell in ("0,5", "-0,5", " 0,5 ", "1.234,5", "1,5E-05", '"0,5"')
    ),
    ("e.csv", "a,b,w\n0,1,1\n", {"weight_column": "a", "source_column": "a"}, "columns 'a', 'b', 'a'"),
    ("e.csv", "a,b\n0,1\n", {"weight_column": "a"}, "('a', 'b')", "--weight none"),
    ("e.csv", "a,b\n0,1\n", {"source_column": "a", "target_column": "a"}, "columns 'a', 'a'"),
    ("e.csv", "0,1,2\n1,2,3\n", {"weight_column": "w"}, "no column 'w'", "'column 1' to 'column 3'"),
    ("e.csv", "a,b,weight\n0,1,2\n1,2,-3\n", {}, "row 3, column 'weight': weight -3", "--weight none"),
    ("e.csv", "a,b,weight\n0,1,2\n1,2,x\n", {}, "row 3, column 'weight': 'x'", "--weight none"),
    ("e.csv", "a,b,weight\n0,1,2\n1,2,\n", {}, "row 3, column 'weight': ''", "--weight none"),
    ("e.csv", "a,b\n0,1\n", {"source_column": "A"}, "unknown column 'A'; choose from: a, b"),
    ("e.csv", "a,a\n0,1\n", {"source_column": "a"}, "2 columns are called 'a'"),
    ("e.csv", ",a,b\n0,1,2\n", {}, "first column has no name", "--source --target"),
    ("e.csv", "0,0\n1,1\n", {}, "no edges"),
    ("e.csv", b"a,b\n0,1\n\xff,2\n", {}, "e.csv, row 3: byte 0xff", "UTF-8"),
    ("e.csv", b"PAR1\0\0\0\0PAR1", {}, "binary data"),
    ("e.csv.gz", gzip.compress(b"0,1\n" * 999, mtime=0)[:-20], {}, "not a readable gzip file"),
    ("e.parquet", "a,b\n0,1\n", {}, "not a readable Parquet file"),
    ("e.docx", "{}", {}, "'.docx'", ".csv, .tsv"),
    ("cora", "0 1", {}, "spgcl.load("),
    ("e.csv", "0,1\n", {"feature_attributes": ["x"]}, "feature_attributes=['x']", "--attributes"),
]


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: f"{case[0]} {case[3]}")
def test_broken_files_are_explained_in_one_line(write, case):
    name, text, options, *parts = case
    path = write(name, text)
    with refusing(path, *parts):
        read(path, **options)


def test_missing_files_and_directories(tmp_path):
    with refusing("e.csv: no such file"):
        read(tmp_path / "e.csv")
    (tmp_path / "folder.csv").mkdir()
    with refusing("folder.csv: is a directory"):
        read(tmp_path / "folder.csv")


def test_parquet_rows_are_named_and_a_truncated_file_is_refused(tmp_path):
    path = tmp_path / "e.parquet"
    parquet.write_table(pa.table({"a": [0, 5, 1], "b": [5, None, 7]}), path)
    with refusing("e.parquet, row 2, column 'b': the id is missing"):
        read(path)
    parquet.write_table(pa.table({"a": [0], "b": [[5]]}), path)
    with refusing("column 'b': list<"):
        read(path)
    path.write_bytes(path.read_bytes()[:-10])
    with refusing(path, "not a readable Parquet file"):
        read(path)


def test_no_features_names_the_options(write):
    path = write("e.csv", "0,1\n")
    with refusing("e.csv: no features", "--features FILE", "--structural degree|spectral"):
        read_graph(path)
    with refusing("leave out structural 'degree'"):
        read_graph(path, np.eye(2), structural="degree")
    with refusing("unknown structural features 'magic'; choose from: degree, spectral"):
        read_graph(path, structural="magic")


def test_a_long_list_with_one_bad_row_names_it(write):
    rows = [f"{number},{number + 1}" for number in range(200_000)]
    rows[150_000] = "1,2,3"
    with refusing("row 150001: expected 2 cells, found 3"):
        read(write("e.csv", "\n".join(rows)))


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="counts threads as Linux lists them")
def test_a_small_file_starts_no_workers(tmp_path):
    # A process that ended while they started was aborted. Arrow always starts one thread to read.
    (tmp_path / "edges.csv").write_text("source,target\na,b\nb,c\n")
    program = (
        "import os, sys; from spgcl.io.read import read_graph; import pyarrow.csv, pyarrow.compute, scipy\n"
        "before = len(os.listdir('/proc/self/task')); read_graph(sys.argv[1], structural='degree')\n"
        "sys.exit(len(os.listdir('/proc/self/task')) - before)"
    )
    started = subprocess.run([sys.executable, "-c", program, tmp_path / "edges.csv"], check=False)
    assert started.returncode == 1


def test_long_cells_are_shortened_in_messages(tmp_path):
    long = "x" * 5000
    write_csv(tmp_path / "e.csv", "source,target,weight", [(0, 1, 1), (1, 2, long)])
    write_csv(tmp_path / "f.csv", "id,x", [(long, 1), (long, 2)])
    write_csv(tmp_path / "g.csv", "source,target", [(long, "b"), ("b", "c")])
    write_csv(tmp_path / "h.csv", "id,x", [("a" + long, 1), ("b", 2), ("c", 3)])
    for edges, features in (("e.csv", "h.csv"), ("g.csv", "f.csv"), ("g.csv", "h.csv")):
        with pytest.raises(InputError) as error:
            read_graph(tmp_path / edges, tmp_path / features)
        assert len(str(error.value)) < 600 and "xxx..." in str(error.value)
