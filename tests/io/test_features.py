import numpy as np
import pyarrow as pa
import pytest
from graphs import refusing
from pyarrow import parquet
from scipy import sparse

from spgcl.io import read_graph


@pytest.fixture
def edges(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("a,b\n0,5\n5,7\n")
    return path


def with_features(edges, name, text, **options):
    path = edges.parent / name
    path.write_text(text)
    return read_graph(edges, path, **options)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("f.csv", "id,x,y\n7,0,1\n5,2,3\n0,4,5\n9,6,7\n"),
        ("f.csv", "7,0,1\n5,2,3\n0,4,5\n9,6,7\n"),
        ("f.csv", ",0,1\n7,0,1\n5,2,3\n0,4,5\n9,6,7\n"),
        ("f.tsv", "id\tx\ty\n7\t0\t1\n5\t2\t3\n0\t4\t5\n9\t6\t7\n"),
        ("f.txt", "7 0 1.0\n5 2 3\n0 4e0 5\n9 6 7\n"),
    ],
)
def test_tables_of_features_set_the_order_and_keep_isolated_nodes(edges, name, text):
    graph = with_features(edges, name, text)
    assert graph.node_ids.tolist() == [7, 5, 0, 9]
    assert graph.features.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert graph.degrees.tolist() == [1, 2, 1, 0]
    assert graph.columns[graph.rows[0]] == 1


def test_the_id_column_can_be_named(edges):
    graph = with_features(edges, "f.csv", "x,who\n1,0\n2,5\n3,7\n", id_column="who")
    assert graph.node_ids.tolist() == [0, 5, 7] and graph.features.tolist() == [[1], [2], [3]]


def test_text_ids_with_unnamed_numbers_above(tmp_path):
    (tmp_path / "e.txt").write_text("a b\n")
    (tmp_path / "f.csv").write_text("name,0,1,2\na,1,2,3\nb,4,5,6\n")
    assert read_graph(tmp_path / "e.txt", tmp_path / "f.csv").node_ids.tolist() == ["a", "b"]
    (tmp_path / "f.csv").write_text("a,1,2,3\nb,4,5,6\n")
    assert read_graph(tmp_path / "e.txt", tmp_path / "f.csv").num_nodes == 2


def test_numbers_and_text_ids_meet_as_text(edges):
    graph = with_features(edges, "f.csv", "id,x\n0,1\n5,2\n7,3\nextra,4\n")
    assert graph.node_ids.tolist() == ["0", "5", "7", "extra"] and graph.degrees.tolist() == [1, 2, 1, 0]


def test_parquet_of_columns_and_of_vectors(edges, tmp_path):
    path = tmp_path / "f.parquet"
    flags = pa.array([True, False, True])
    parquet.write_table(pa.table({"id": [0, 5, 7], "x": [1, 2, 3], "flag": flags}), path)
    assert read_graph(edges, path).features.tolist() == [[1, 1], [2, 0], [3, 1]]
    parquet.write_table(pa.table({"id": [0, 5, 7], "v": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]}), path)
    assert read_graph(edges, path).features.tolist() == [[1, 2], [3, 4], [5, 6]]
    parquet.write_table(pa.table({"id": [0, 5, 7], "v": [[1.0], [3.0, 4.0], [5.0]]}), path)
    with refusing(path, "row 2, column 'v': a list of 2 numbers"):
        read_graph(edges, path)
    parquet.write_table(pa.table({"id": [0, 5, 7], "when": pa.array([1, 2, 3], pa.timestamp("s"))}), path)
    assert read_graph(edges, path).feature_names[0] == "when"
    parquet.write_table(pa.table({"id": [0, 5, 7], "raw": pa.array([b"a", b"b", b"c"])}), path)
    with refusing(path, "column 'raw': binary"):
        read_graph(edges, path)


def test_arrays_give_rows_to_nodes_in_order(edges, tmp_path):
    matrix = np.arange(20, dtype=np.float64).reshape(10, 2)
    np.save(tmp_path / "f.npy", matrix)
    np.savez_compressed(tmp_path / "f.npz", features=matrix)
    for source in (tmp_path / "f.npy", tmp_path / "f.npz", matrix, matrix.tolist()):
        graph = read_graph(edges, source)
        assert graph.node_ids.tolist() == list(range(10)) and graph.num_edges == 2
        assert (graph.features == matrix).all()


def test_scipy_files_stay_sparse(edges, tmp_path):
    shape = (200_000, 50_000)  # 40 GB when dense
    matrix = sparse.csr_array((np.ones(4), ([0, 5, 7, 9], [1, 2, 3, 4])), shape=shape)
    sparse.save_npz(tmp_path / "f.npz", matrix)
    graph = read_graph(edges, tmp_path / "f.npz")
    assert sparse.issparse(graph.features) and graph.features.nnz == 4 and graph.num_features == 50_000


BROKEN = [
    ("id,x\n0,1\n5,2\n", {}, "edges.csv, row 3: node 7 is not in {path} (ids such as 0)"),
    ("id,x\n0,1\n5,2\n7,3\n5,4\n", {}, "{path}, row 5: node 5 again, first in row 3", "--id"),
    ("id,x,c\n0,1,2\n5,-inf,3\n", {}, "{path}, row 3, column 'x': '-inf' is not"),
    ("id,x,c\n0,1,2\n5,1e99,3\n", {}, "{path}, row 3, column 'x': '1e99' is not"),
    ("id,x\n0,1\n5\n", {}, "{path}, row 3: expected 2 cells, found 1"),
    ("id,x\n0,1\n,2\n", {}, "{path}, row 3, column 'id': the id is missing"),
    ("id\n0\n5\n7\n", {}, "{path}: no feature columns", "'id'", "--structural"),
    ("", {}, "{path}: holds no rows"),
    ("id,x\n0,1\n", {"id_column": "node"}, "{path}: unknown column 'node'; choose from: id, x"),
]


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case[2])
def test_broken_feature_tables(edges, case):
    text, options, *parts = case
    with refusing(*(part.format(path=edges.parent / "f.csv") for part in parts)):
        with_features(edges, "f.csv", text, **options)


def test_broken_arrays(edges, tmp_path):
    def refused(source, *parts):
        with refusing(source, *parts):
            read_graph(edges, source)

    path = tmp_path / "f.npy"
    np.save(path, np.ones((6, 2)))
    refused(path, "edges.csv, row 3: node 7", "(nodes 0 to 5)")
    np.save(path, np.array([[1.0, np.nan]] * 10))
    refused(path, "row 0, column 1 is nan")
    np.save(path, np.ones(10))
    refused(path, "shape (10,)")
    np.save(path, np.array([[{}]] * 10, dtype=object), allow_pickle=True)
    refused(path, "not a readable NumPy file")
    np.save(path, np.ones((10, 2)))
    path.write_bytes(path.read_bytes()[:-8])
    refused(path, "not a readable NumPy file")
    path.write_text("0,1\n")
    refused(path, "not a readable NumPy file")

    archive = tmp_path / "f.npz"
    np.savez(archive, one=np.ones(2), two=np.ones(2))
    refused(archive, "one, two", "scipy.sparse.save_npz")
    np.savez(archive, one=np.array([None], dtype=object))
    refused(archive, "not a readable NumPy file")
    np.savez(archive, one=np.ones((10, 9)))
    archive.write_bytes(archive.read_bytes()[:200])
    refused(archive, "not a readable NumPy file")
    refused(tmp_path / "absent.csv", "no such file")
    (tmp_path / "f.xlsx").write_text("x")
    refused(tmp_path / "f.xlsx", "'.xlsx'", ".csv, .tsv, .txt, .parquet, .feather, .npy, .npz")


def test_positions_cannot_serve_text_ids(tmp_path):
    (tmp_path / "e.txt").write_text("a b\n")
    np.save(tmp_path / "f.npy", np.ones((2, 2)))
    with refusing("e.txt", "'a'", "f.npy are nodes 0 to 1", "id column"):
        read_graph(tmp_path / "e.txt", tmp_path / "f.npy")


def test_wide_rows_fit(tmp_path):
    (tmp_path / "e.txt").write_text("0 1\n")
    wide = np.full(5_000, "1." + "0" * 300)  # 1.5 MB per row
    lines = [",".join(map(str, [node, *wide])) for node in (0, 1)]
    (tmp_path / "f.csv").write_text("\n".join(lines))
    assert read_graph(tmp_path / "e.txt", tmp_path / "f.csv").num_features == 5_000
