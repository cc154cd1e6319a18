import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from graphs import refusing
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from spgcl.io import read_embeddings, read_graph, write_embeddings

FORMATS = ["parquet", "npy", "csv"]
VECTORS = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
NUMBERS = np.array([7, -2, 2**62])


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize(
    "ids", [NUMBERS, np.array(["b", "a, b", "#ü 007"], dtype=object)], ids=["numbers", "text"]
)
def test_every_format_gives_back_what_it_was_given(tmp_path, file_format, ids):
    path = write_embeddings(tmp_path / "run", VECTORS, ids, file_format)
    assert path == tmp_path / "run" / f"embeddings.{file_format}"
    vectors, nodes = read_embeddings(tmp_path / "run")
    assert vectors.dtype == np.float32 and (vectors == VECTORS).all()
    assert nodes.tolist() == ids.tolist()


@pytest.mark.parametrize("file_format", ["parquet", "csv"])
@given(ids=st.lists(st.text(max_size=5), min_size=1, max_size=5, unique=True))
@example(ids=["\n#"])
@settings(max_examples=60, deadline=None)
def test_any_text_survives_as_an_id(tmp_path_factory, file_format, ids):
    folder = tmp_path_factory.mktemp("run")
    vectors, nodes = np.ones((len(ids), 2), dtype=np.float32), np.array(ids, dtype=object)
    if file_format == "csv" and any("\0" in node for node in ids):
        with refusing("a NUL character", "use parquet or npy"):
            write_embeddings(folder, vectors, nodes, file_format)
        assert not list(folder.iterdir())
        return
    write_embeddings(folder, vectors, nodes, file_format)
    found = read_embeddings(folder)[1]
    assert [str(node) for node in found.tolist()] == ids


@given(ids=st.lists(st.text(max_size=5), min_size=1, max_size=5, unique=True))
@settings(max_examples=60, deadline=None)
def test_ids_in_lines_survive_or_are_refused(tmp_path_factory, ids):
    folder = tmp_path_factory.mktemp("run")
    if any("\n" in node for node in ids):
        with refusing("a line break", "use parquet or csv"):
            write_embeddings(folder, np.ones((len(ids), 2)), np.array(ids, dtype=object), "npy")
        assert not list(folder.iterdir())
        return
    write_embeddings(folder, np.ones((len(ids), 2)), np.array(ids, dtype=object), "npy")
    assert [str(node) for node in read_embeddings(folder)[1].tolist()] == ids


def test_parquet_has_the_promised_columns(tmp_path):
    table = parquet.read_table(write_embeddings(tmp_path, VECTORS, NUMBERS))
    assert table.schema.field("node").type == pa.int64()
    assert table.schema.field("embedding").type == pa.list_(pa.float32(), 4)
    assert table.column("embedding")[1].as_py() == VECTORS[1].tolist()


def test_csv_opens_in_anything(tmp_path):
    lines = write_embeddings(tmp_path, VECTORS, NUMBERS, "csv").read_text().splitlines()
    assert lines[0] == '"node","embedding_0","embedding_1","embedding_2","embedding_3"'
    assert lines[1].startswith("7,0.12573022,")


@pytest.mark.parametrize("file_format", FORMATS)
def test_the_same_input_gives_the_same_bytes_and_nothing_else_is_left(tmp_path, file_format):
    folders = [tmp_path / "one", tmp_path / "two"]
    contents = []
    for folder in folders:
        write_embeddings(folder, VECTORS, NUMBERS, file_format)
        contents.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert contents[0] == contents[1]
    expected = {"embeddings.npy", "nodes.txt"} if file_format == "npy" else {f"embeddings.{file_format}"}
    assert set(contents[0]) == expected


def test_another_format_replaces_the_first(tmp_path):
    for file_format in [*FORMATS, "parquet"]:
        write_embeddings(tmp_path, VECTORS, NUMBERS, file_format)
    assert [path.name for path in tmp_path.iterdir()] == ["embeddings.parquet"]


def test_a_failed_write_leaves_the_old_file_alone(tmp_path):
    path = write_embeddings(tmp_path, VECTORS, NUMBERS, "csv")
    before = path.read_bytes()
    # A lone surrogate has no UTF-8: the writer fails half-way.
    with pytest.raises(UnicodeEncodeError):
        write_embeddings(tmp_path, VECTORS, np.array(["a", "b", "\ud800"], dtype=object), "csv")
    assert [file.name for file in tmp_path.iterdir()] == ["embeddings.csv"] and path.read_bytes() == before


def test_embeddings_serve_as_features(tmp_path):
    path = write_embeddings(tmp_path, VECTORS, NUMBERS)
    graph = read_graph([(7, -2), (-2, 2**62), (7, -2)], path)
    assert graph.node_ids.tolist() == NUMBERS.tolist() and (graph.features == VECTORS).all()


def test_what_cannot_be_written_or_read_is_refused(tmp_path):
    with refusing("unknown format 'xlsx'; choose from: parquet, npy, csv"):
        write_embeddings(tmp_path, VECTORS, NUMBERS, "xlsx")
    with refusing("embeddings", "shape (3,)"):
        write_embeddings(tmp_path, VECTORS[:, 0], NUMBERS)
    with refusing("3 nodes", "shape (2,)"):
        write_embeddings(tmp_path, VECTORS, NUMBERS[:2])
    with refusing(tmp_path, "embeddings.parquet, .npy or .csv"):
        read_embeddings(tmp_path)
    path = write_embeddings(tmp_path, VECTORS, NUMBERS, "npy")
    (tmp_path / "nodes.txt").write_text("1\n2\n")
    with refusing("nodes.txt: 2 nodes", "embeddings.npy of shape (3, "):
        read_embeddings(tmp_path)
    (tmp_path / "nodes.txt").unlink()
    with refusing("nodes.txt: no such file"):
        read_embeddings(tmp_path)
    path.rename(tmp_path / "embeddings.parquet")
    with refusing("embeddings.parquet: not a readable Parquet file"):
        read_embeddings(tmp_path)
    (tmp_path / "embeddings.csv").write_text("node,x\n1,2\n")
    with refusing("(parquet, csv)"):
        read_embeddings(tmp_path)


def test_reading_imports_no_heavy_library_until_it_is_needed():
    heavy = "{'torch', 'torch_geometric', 'networkx', 'pyarrow', 'sklearn'}"
    code = f"import sys, spgcl.io; print(sorted({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


@pytest.mark.parametrize(("zeros", "compression"), [(0.0, "UNCOMPRESSED"), (0.5, "SNAPPY")])
def test_only_vectors_with_zeros_are_compressed(tmp_path, zeros, compression):
    generator = np.random.default_rng(0)
    vectors = generator.standard_normal((300, 32), dtype=np.float32)
    vectors[generator.random(vectors.shape) < zeros] = 0
    path = write_embeddings(tmp_path, vectors, np.arange(300))
    column = parquet.ParquetFile(path).metadata.row_group(0).column(1)
    assert column.compression == compression
    assert np.array_equal(read_embeddings(tmp_path)[0], vectors)
