import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy import sparse

from spgcl.errors import InputError
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
    with pytest.raises(InputError, match=r"row 2, column 'v': a list of 2 numbers; all must be equally long"):
        read_graph(edges, path)
    parquet.write_table(pa.table({"id": [0, 5, 7], "when": pa.array([1, 2, 3], pa.timestamp("s"))}), path)
    with pytest.raises(
        InputError, match=r"f\.parquet, column 'when': timestamp\[.*\] is not a number; encode"
    ):
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


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (
            "id,x\n0,1\n5,2\n",
            {},
            "edges.csv, row 3: node 7 is not in {path} (its ids look like 0); add its row",
        ),
        (
            "id,x\n0,1\n5,2\n7,3\n5,4\n",
            {},
            "{path}, row 5: node 5 again, first in row 3; keep one row a node",
        ),
        (
            "id,x,c\n0,1,2\n5,2,red\n",
            {},
            "{path}, row 3, column 'c': 'red' is not a number; encode categories",
        ),
        (
            "id,x,c\n0,1,2\n5,,3\n",
            {},
            "{path}, row 3, column 'x': missing value ''; fill it in, or drop the row",
        ),
        ("id,x,c\n0,1,2\n5,NA,3\n", {}, "{path}, row 3, column 'x': missing value 'NA'"),
        ("id,x,c\n0,1,2\n5,nan,3\n", {}, "{path}, row 3, column 'x': missing value 'nan'"),
        ("id,x,c\n0,1,2\n5,-inf,3\n", {}, "{path}, row 3, column 'x': '-inf' is not a finite number; mend"),
        ("id,x,c\n0,1,2\n5,1e99,3\n", {}, "{path}, row 3, column 'x': '1e99' is not a finite number; mend"),
        ("id,x\n0,1\n5\n", {}, "{path}, row 3: 1 cells where the first row has 2; mend the row"),
        ("id,x\n0,1\n,2\n", {}, "{path}, row 3, column 'id': the id is missing"),
        ("id\n0\n5\n7\n", {}, "{path}: no feature columns beside 'id'; add some or use --structural"),
        ("", {}, "{path}: holds no rows"),
        ("id,x\n0,1\n", {"id_column": "node"}, "{path}: unknown column 'node'; choose from: id, x"),
    ],
)
def test_broken_feature_tables(edges, text, options, message):
    with pytest.raises(InputError) as error:
        with_features(edges, "f.csv", text, **options)
    assert message.format(path=edges.parent / "f.csv") in str(error.value)
    assert "\n" not in str(error.value)


def test_broken_arrays(edges, tmp_path):
    def refused(source, message):
        with pytest.raises(InputError) as error:
            read_graph(edges, source)
        assert message in str(error.value) and str(source) in str(error.value)
        assert "\n" not in str(error.value)

    path = tmp_path / "f.npy"
    np.save(path, np.ones((6, 2)))
    refused(path, "edges.csv, row 3: node 7 is not in")
    refused(path, "which describes 6 nodes (0 to 5)")
    np.save(path, np.array([[1.0, np.nan]] * 10))
    refused(path, "f.npy: feature row 0, column 1 is nan; features must be finite numbers")
    np.save(path, np.ones(10))
    refused(path, "f.npy: features need two dimensions (nodes x columns), not shape (10,)")
    np.save(path, np.array([[{}]] * 10, dtype=object), allow_pickle=True)
    refused(path, "f.npy: not a readable NumPy file")
    np.save(path, np.ones((10, 2)))
    path.write_bytes(path.read_bytes()[:-8])
    refused(path, "f.npy: not a readable NumPy file; truncated, or not what its name says?")
    path.write_text("0,1\n")
    refused(path, "f.npy: not a readable NumPy file")

    archive = tmp_path / "f.npz"
    np.savez(archive, one=np.ones(2), two=np.ones(2))
    refused(archive, "f.npz: holds one, two; save one array, or a matrix with scipy.sparse.save_npz")
    np.savez(archive, one=np.array([None], dtype=object))
    refused(archive, "f.npz: not a readable NumPy file")
    np.savez(archive, one=np.ones((10, 9)))
    archive.write_bytes(archive.read_bytes()[:200])
    refused(archive, "f.npz: not a readable NumPy file; truncated")
    refused(tmp_path / "absent.csv", "no such file")
    (tmp_path / "f.xlsx").write_text("x")
    refused(
        tmp_path / "f.xlsx", "cannot read features from '.xlsx'; use .csv, .tsv, .txt, .parquet, .npy, .npz"
    )


def test_positions_cannot_serve_text_ids(tmp_path):
    (tmp_path / "e.txt").write_text("a b\n")
    np.save(tmp_path / "f.npy", np.ones((2, 2)))
    with pytest.raises(InputError, match=r"by text \('a'\), but the rows of .*f\.npy are nodes 0 to 1; give"):
        read_graph(tmp_path / "e.txt", tmp_path / "f.npy")


def test_wide_rows_fit(tmp_path):
    (tmp_path / "e.txt").write_text("0 1\n")
    wide = np.full(5_000, "1." + "0" * 300)  # 1.5 MB a row
    lines = [",".join(map(str, [node, *wide])) for node in (0, 1)]
    (tmp_path / "f.csv").write_text("\n".join(lines))
    assert read_graph(tmp_path / "e.txt", tmp_path / "f.csv").num_features == 5_000
