"""A store holds exactly the graph that the same files give in memory."""

import gzip
import json
import os
import resource
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pytest
from graphs import refusing, write_csv
from pyarrow import parquet

from spgcl import Graph
from spgcl.files import locked
from spgcl.io.draft import Options
from spgcl.scale.ingest import LEAST_MEMORY, Sources, ingest
from spgcl.scale.store import is_store, open_store


def random_edges(num_nodes, num_edges, *, weighted=False, seed=1):
    """Edges with loops, repeats and both directions."""
    generator = np.random.default_rng(seed)
    ends = generator.integers(0, num_nodes, (num_edges, 2))
    ends = np.concatenate([ends, ends[: num_edges // 4], ends[: num_edges // 5, ::-1]])
    if not weighted:
        return ends.tolist()
    return [
        [*pair, value]
        for pair, value in zip(ends.tolist(), generator.uniform(0.5, 2, len(ends)).tolist(), strict=True)
    ]


def write_table(path, names, rows):
    if path.suffix == ".csv":
        return write_csv(path, ",".join(names), rows)
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    parquet.write_table(pa.table(columns), path, row_group_size=100)
    return path


def write_features(path, num_nodes, width=5):
    np.save(path, np.random.default_rng(2).normal(size=(num_nodes, width)))
    return path


def made(folder, edges, features=None, **options):
    sources = Sources([str(edges)], features and str(features), **options)
    return ingest(sources, folder / "store", memory=LEAST_MEMORY, block_rows=32)


def require_same(store, graph):
    loaded = store.load()
    assert loaded.notes == graph.notes
    np.testing.assert_array_equal(loaded.node_ids, graph.node_ids)
    assert loaded.feature_names == graph.feature_names
    np.testing.assert_array_equal(loaded.columns, graph.columns)
    np.testing.assert_array_equal(loaded.features, graph.features)
    assert loaded.digest == graph.digest


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_edges_and_a_matrix_of_features(tmp_path, directed, weighted, kind):
    rows = random_edges(300, 1000, weighted=weighted)
    edges = write_table(tmp_path / f"edges.{kind}", ["source", "target", "weight"][: len(rows[0])], rows)
    features = write_features(tmp_path / "features.npy", 310)
    store = made(tmp_path, edges, features, directed=directed)
    require_same(store, Graph.of(edges, features, directed=directed))
    looped = store.load().adjacency.toarray()
    before = [np.count_nonzero(looped[node, :node]) for node in range(310)]
    np.testing.assert_array_equal(store.diagonal, before)


@pytest.mark.parametrize("ids", ["numbers", "text"])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_table_of_features_names_the_nodes(tmp_path, ids, weighted):
    name = (lambda node: 7 * node - 50) if ids == "numbers" else "node {}".format
    rows = [[name(a), name(b), *rest] for a, b, *rest in random_edges(200, 500, weighted=weighted)]
    edges = write_table(tmp_path / "edges.csv", ["a", "b", "weight"][: len(rows[0])], rows)
    order = np.random.default_rng(3).permutation(210).tolist()
    values = np.random.default_rng(4).normal(size=(210, 3)).tolist()
    described = [[name(node), *value] for node, value in zip(order, values, strict=True)]
    features = write_table(tmp_path / "features.csv", ["id", "x", "y", "z"], described)
    store = made(tmp_path, edges, features)
    assert store.ids == ids
    require_same(store, Graph.of(edges, features))


@pytest.mark.parametrize("ids", ["rows", "numbers", "text"])
def test_nodes_of_edges_alone_get_structural_features(tmp_path, ids):
    name = {"rows": int, "numbers": lambda node: 3 * node + 5, "text": "ü{}".format}[ids]
    rows = [[name(a), name(b)] for a, b in random_edges(100, 900)]
    edges = write_table(tmp_path / "edges.parquet", ["a", "b"], rows)
    store = made(tmp_path, edges, structural="degree")
    require_same(store, Graph.of(edges, structural="degree"))
    assert store.ids == ids


def test_ids_beside_a_matrix_and_chosen_columns(tmp_path):
    edges = write_csv(tmp_path / "edges.csv", "a,b", [["u", "v"], ["v", "w"]])
    features = write_features(tmp_path / "features.npy", 3)
    (tmp_path / "features.nodes.txt").write_text("w\nu\nv\n")
    require_same(made(tmp_path, edges, features), Graph.of(edges, features))
    table = write_csv(tmp_path / "features.csv", "x,id,y", [[1, "u", 5], [2, "v", 6], [3, "w", 7]])
    store = ingest(
        Sources([str(edges)], str(table), feature_columns=["y"]), tmp_path / "other", memory=LEAST_MEMORY
    )
    require_same(store, Graph.of(edges, table, feature_columns=["y"]))


def test_several_files_by_pattern_are_one_graph(tmp_path):
    rows = random_edges(150, 900)
    whole = write_csv(tmp_path / "whole.csv", "a,b", rows)
    (tmp_path / "parts").mkdir()
    write_csv(tmp_path / "parts" / "1.csv", "a,b", rows[:500])
    packed = (write_csv(tmp_path / "rest.csv", "a,b", rows[500:])).read_bytes()
    (tmp_path / "parts" / "2.csv.gz").write_bytes(gzip.compress(packed))
    features = write_features(tmp_path / "features.npy", 150)
    store = made(tmp_path, tmp_path / "parts" / "*", features)
    require_same(store, Graph.of(whole, features))


def test_lines_are_read_in_parts_with_comments_quotes_and_blanks(tmp_path, monkeypatch):
    monkeypatch.setattr("spgcl.io.chunks._BYTES_PER_CELL", 1e-3)
    rows = random_edges(80, 400)
    text = "# made by hand\n" + "".join(f'"{a}"  {b}\n# {a}\n' for a, b in rows)
    edges = tmp_path / "edges.txt"
    edges.write_text(text, encoding="utf-8")
    features = write_features(tmp_path / "features.npy", 80)
    np.testing.assert_array_equal(
        made(tmp_path, edges, features).load().columns, Graph.of(edges, features).columns
    )


def test_rows_of_parts_are_those_of_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr("spgcl.io.chunks._BYTES_PER_CELL", 1e-3)
    rows = random_edges(80, 400)
    edges = write_csv(tmp_path / "edges.csv", "a,b", [*rows, [1, 99], *rows])
    with refusing(99, f"row {len(rows) + 2}", edges):
        made(tmp_path, edges, write_features(tmp_path / "features.npy", 80))
    assert not list(tmp_path.glob("*store*"))


def test_float16_halves_the_features(tmp_path):
    edges = write_csv(tmp_path / "edges.csv", "a,b", random_edges(80, 400))
    features = write_features(tmp_path / "features.npy", 80)
    store = made(tmp_path, edges, features, half=True)
    assert store.features.dtype == np.float16
    np.testing.assert_allclose(store.features, np.load(features), atol=2e-3)
    np.save(features, np.full((80, 1), 1e5))
    with refusing("100000", "65504"):
        ingest(Sources([str(edges)], str(features), half=True), tmp_path / "other", memory=LEAST_MEMORY)


@pytest.mark.parametrize(
    ("edges", "options", "parts"),
    [
        ([[0, 1], [1, 90]], {}, (90, "row 3")),
        ([[0, 1], ["x", 1]], {}, ("'x'", "row 3")),
        ([[3, 3]], {}, ("no edges",)),
        ([[0, 1]], {"structural": "degree"}, ("degree",)),
    ],
)
def test_input_errors_leave_nothing(tmp_path, edges, options, parts):
    path = write_csv(tmp_path / "edges.csv", "a,b", edges)
    with refusing(*parts):
        made(tmp_path, path, write_features(tmp_path / "features.npy", 80), **options)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["edges.csv", "features.npy"]


def test_sides_with_ids_of_their_own_need_memory(tmp_path):
    edges = write_csv(tmp_path / "edges.csv", "a,b", [[1, 2]])
    with refusing("--bipartite"):
        made(tmp_path, edges, structural="degree", columns=Options(bipartite=True))


def test_an_unknown_text_id_is_found_in_its_row(tmp_path):
    edges = write_csv(tmp_path / "edges.csv", "a,b", [["u", "v"], ["v", "w"], ["w", "u"]])
    features = write_csv(tmp_path / "features.csv", "id,x", [["u", 1], ["v", 2]])
    with refusing("'w'", "row 3", features):
        made(tmp_path, edges, features)


def test_a_missing_duckdb_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    edges = write_csv(tmp_path / "edges.csv", "a,b", [["u", "v"]])
    with refusing("spgcl[scale]"):
        made(tmp_path, edges, structural="degree")


def small_store(folder):
    edges = write_csv(folder / "edges.csv", "a,b", random_edges(80, 400))
    return made(folder, edges, write_features(folder / "features.npy", 80))


def test_an_earlier_store_stays_unless_it_is_replaced(tmp_path):
    store = small_store(tmp_path)
    sources = Sources([str(tmp_path / "edges.csv")], structural="degree")
    with refusing(store.folder, "--overwrite"):
        ingest(sources, store.folder)
    with refusing("no features"):
        ingest(Sources(sources.edges), store.folder, overwrite=True)
    assert open_store(store.folder).digest == store.digest
    assert ingest(sources, store.folder, overwrite=True).num_features == 4
    (tmp_path / "mine").mkdir()
    with refusing("mine", "not a store"):
        ingest(sources, tmp_path / "mine", overwrite=True)


def test_two_writers(tmp_path):
    store = small_store(tmp_path)
    with locked(store.folder), refusing(store.folder, "in use by"):
        ingest(Sources([str(tmp_path / "edges.csv")], structural="degree"), store.folder, overwrite=True)


@pytest.mark.parametrize("name", ["rows", "columns", "diagonal", "features"])
def test_a_truncated_or_altered_file_is_refused(tmp_path, name):
    path = small_store(tmp_path).folder / f"{name}.npy"
    content = path.read_bytes()
    path.write_bytes(content[:-3])
    with refusing(path, f"{len(content):,}"):
        open_store(path.parent)
    path.write_bytes(content[:-3] + bytes([content[-3] ^ 1]) + content[-2:])
    with refusing(path):
        open_store(path.parent).load()
    path.unlink()
    with refusing(path, "missing"):
        open_store(path.parent)


def test_a_newer_format_is_refused(tmp_path):
    path = small_store(tmp_path).folder / "store.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "format": 2, "spgcl": "9.1"}))
    with refusing(path, "9.1"):
        open_store(path.parent)
    path.write_text(path.read_text()[:50])
    with refusing(path):
        open_store(path.parent)


MAKE = """
import sys
from spgcl.cli import run
sys.exit(run(sys.argv[1:]))
"""


def start(folder, *more, limit=None):
    command = [sys.executable, "-c", MAKE, "ingest", str(folder / "edges.parquet"), "--structural", "degree"]
    set_limit = None if limit is None else lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    return subprocess.Popen(
        [*command, "--out", str(folder / "store"), *more],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=set_limit,
    )


def large_edges(folder, num_edges=300_000):
    ends = np.random.default_rng(5).integers(0, 20_000, (2, num_edges))
    parquet.write_table(pa.table({"a": ends[0], "b": ends[1]}), folder / "edges.parquet")


def test_a_killed_ingestion_leaves_no_store_and_starts_again(tmp_path):
    large_edges(tmp_path, 1_000_000)
    process = start(tmp_path)
    while not (tmp_path / ".store.ingest" / "scratch" / "keys").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert not is_store(tmp_path / "store")
    again = start(tmp_path)
    assert again.wait() == 0, again.communicate()
    again.communicate()
    require_same(open_store(tmp_path / "store"), Graph.of(tmp_path / "edges.parquet", structural="degree"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["edges.parquet", "store"]


def test_a_full_disk_is_one_line(tmp_path):
    large_edges(tmp_path)
    process = start(tmp_path, limit=2**20)
    _, line = process.communicate()
    assert process.returncode == 2 and len(line.splitlines()) == 1 and "keys" in line
    assert [path.name for path in tmp_path.iterdir()] == ["edges.parquet"]


def test_columns_are_named_as_in_memory(tmp_path):
    edges = write_csv(tmp_path / "edges.csv", "when,b,a", [[9, x, y] for x, y in random_edges(60, 300)])
    features = write_features(tmp_path / "features.npy", 80)
    with refusing("--source", edges):
        made(tmp_path, edges, features)
    store = made(tmp_path, edges, features, columns=Options("a", "b"))
    require_same(store, Graph.of(edges, features, source_column="a", target_column="b"))
