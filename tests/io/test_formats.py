"""Formats of graphs that other programs write: matrices, networks, Feather, triples, two sides."""

import json
import math
import random

import networkx
import numpy as np
import pandas
import pyarrow as pa
import pytest
from commands import answer, output, refusal
from graphs import arcs_of, refusing, write_csv
from pyarrow import feather
from scipy import io, sparse

import spgcl
from spgcl import Graph

PATH = [(0, 1, 2.0), (1, 2, 1.0), (2, 3, 1.0)]
BOTH_WAYS = {(one, two): weight for a, b, weight in PATH for one, two in ((a, b), (b, a))}


def matrix():
    starts, ends, weights = zip(*PATH, strict=True)
    return sparse.coo_array((weights, (starts, ends)), shape=(4, 4))


def network():
    graph = networkx.Graph()
    graph.add_nodes_from(range(4))
    graph.add_weighted_edges_from(PATH)
    return graph


def save_mtx(path):
    io.mmwrite(path, matrix().tocoo())


def save_symmetric_mtx(path):
    full = matrix() + matrix().T
    io.mmwrite(path, sparse.coo_matrix(full), symmetry="symmetric")


def save_json(path):
    path.write_text(json.dumps(networkx.node_link_data(network(), edges="edges")))


def save_links(path):
    path.write_text(json.dumps(networkx.node_link_data(network(), edges="links")))


def save_feather(path):
    starts, ends, weights = zip(*PATH, strict=True)
    feather.write_feather(pa.table({"weight": weights, "source": starts, "target": ends}), path)


FORMATS = {
    "a.npz": lambda path: sparse.save_npz(path, matrix().tocsr()),
    "a.mtx": save_mtx,
    "b.mtx": save_symmetric_mtx,
    "a.mat": lambda path: io.savemat(path, {"A": matrix().tocsc(), "labels": np.arange(4)}),
    "a.graphml": lambda path: networkx.write_graphml(network(), path),
    "a.gml": lambda path: networkx.write_gml(network(), path),
    "a.gexf": lambda path: networkx.write_gexf(network(), path),
    "a.edgelist": lambda path: networkx.write_edgelist(network(), path),
    "b.edgelist": lambda path: networkx.write_weighted_edgelist(network(), path),
    "a.json": save_json,
    "b.json": save_links,
    "a.feather": save_feather,
}


@pytest.mark.parametrize("name", FORMATS)
def test_a_weighted_path_is_the_same_in_every_format(tmp_path, name):
    FORMATS[name](tmp_path / name)
    graph = Graph.of(tmp_path / name, structural="degree")
    assert arcs_of(graph) == BOTH_WAYS and sorted(graph.node_ids.tolist()) == [0, 1, 2, 3]
    assert any("weight" in note for note in graph.notes)


def test_matlab_files_with_features_and_without_a_graph(tmp_path):
    held = {"network": matrix().tocsc(), "X": np.eye(4), "group": np.arange(4)}
    io.savemat(tmp_path / "a.mat", held)
    graph = Graph.of(tmp_path / "a.mat")
    assert graph.features.tolist() == np.eye(4).tolist() and any(
        "'X' of a.mat" in line for line in graph.notes
    )
    io.savemat(tmp_path / "b.mat", {"one": matrix().tocsc(), "two": matrix().tocsc()})
    with refusing("b.mat", "one, two"):
        Graph.of(tmp_path / "b.mat", structural="degree")
    io.savemat(tmp_path / "c.mat", {"x": np.eye(3)})
    with refusing("c.mat", "none among x"):
        Graph.of(tmp_path / "c.mat", structural="degree")


@pytest.mark.parametrize("name", ["a.mtx", "a.mat", "a.gml", "a.gexf", "a.json", "a.feather", "a.npz"])
def test_damaged_files_are_refused(tmp_path, name):
    (tmp_path / name).write_bytes(b"\x00no such format{")
    with refusing(name):
        Graph.of(tmp_path / name, structural="degree")
    (tmp_path / "b.json").write_text('{"nodes": []}')
    with refusing("b.json", "'links'"):
        Graph.of(tmp_path / "b.json", structural="degree")


def test_rows_of_sparse_features_have_the_ids_beside_them(tmp_path):
    write_csv(tmp_path / "e.csv", "source,target", [("a", "b"), ("b", "c")])
    sparse.save_npz(tmp_path / "f.npz", sparse.eye_array(3, format="csr"))
    (tmp_path / "f.nodes.txt").write_text("c\na\nb\n")
    graph = Graph.of(tmp_path / "e.csv", tmp_path / "f.npz")
    assert graph.node_ids.tolist() == ["c", "a", "b"] and sparse.issparse(graph.features)
    (tmp_path / "f.nodes.txt").write_text("c\na\n")
    with refusing("f.nodes.txt", "2 ids for 3 rows"):
        Graph.of(tmp_path / "e.csv", tmp_path / "f.npz")


HEADERS = ["source,target", "from,to", "node_1,node_2", "who,whom", "u,v", "citing,cited"]
PURCHASES = [(5, 5), (5, 6), (7, 5)]


def test_two_sides_are_kept_apart(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_csv("p.csv", "user,item", PURCHASES)
    joined = Graph.of("p.csv", structural="degree")
    assert any("--bipartite" in note for note in joined.notes) and joined.num_nodes == 3
    record = answer(capsys, "inspect", "p.csv", "--bipartite", "--structural", "degree")
    assert record["nodes"] == 4 and record["edges"] == 3 and record["connected_components"] == 1
    graph = Graph.of("p.csv", structural="degree", bipartite=True)
    assert sorted(graph.node_ids.tolist()) == ["item:5", "item:6", "user:5", "user:7"]
    answer(capsys, "fit", "p.csv", "--bipartite", "--method", "fastrp", "--out", "run")
    answer(capsys, "embed", "run", "p.csv", "--out", "v.parquet")
    rows = [("user:5", 1), ("user:7", 2), ("item:5", 3), ("item:6", 4)]
    write_csv("f.csv", "id,x", rows)
    assert Graph.of("p.csv", "f.csv", bipartite=True).features.ravel().tolist() == [1, 2, 3, 4]
    np.savez("g.npz", node_features=np.eye(3), edges=np.array([[0, 1], [1, 2]]))
    assert "--bipartite" in refusal(capsys, "inspect", "g.npz", "--bipartite")


@pytest.mark.parametrize("header", HEADERS)
def test_ends_of_one_kind_get_no_note(tmp_path, header):
    write_csv(tmp_path / "e.csv", header, PURCHASES)
    assert not any("--bipartite" in note for note in Graph.of(tmp_path / "e.csv", structural="degree").notes)


def test_triples_say_that_relations_are_dropped(tmp_path):
    rows = [("a", "likes", "b"), ("b", "owns", "c"), ("c", "likes", "a")]
    write_csv(tmp_path / "t.csv", "head,relation,tail", rows)
    graph = Graph.of(tmp_path / "t.csv", structural="degree")
    assert graph.num_edges == 3
    assert any("edges of 2 kinds are read as one kind" in line for line in graph.notes)
    write_csv(tmp_path / "t.tsv", "", [["\t".join(row)] for row in rows])
    with refusing("'b'", "--source 'column 1' --target 'column 3'", "--weight none"):
        Graph.of(tmp_path / "t.tsv", structural="degree")
    graph = Graph.of(
        tmp_path / "t.tsv", structural="degree", source_column="column 1", target_column="column 3"
    )
    assert graph.num_edges == 3


def test_relations_are_counted_per_node(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    draw = random.Random(0)
    rows = [(draw.randrange(20), draw.choice("xyz"), draw.randrange(20)) for _ in range(60)]
    write_csv("t.csv", "head,relation,tail", rows)
    graph = Graph.of("t.csv", structural="relations")
    names = [f"{end} of {kind}" for end in ("source", "target") for kind in "xyz"]
    counts = {(node, name): 0 for node in graph.node_ids.tolist() for name in names}
    for head, relation, tail in rows:
        counts[head, f"source of {relation}"] += 1
        counts[tail, f"target of {relation}"] += 1
    expected = [[math.log1p(counts[node, name]) for name in names] for node in graph.node_ids.tolist()]
    assert list(graph.feature_names) == names
    assert np.allclose(graph.features.toarray(), expected)
    # Without a header numbers in the middle are relations, not weights.
    write_csv("t.tsv", "", [[f"{head}\t{'xyz'.index(relation)}\t{tail}"] for head, relation, tail in rows])
    ends = {"source_column": "column 1", "target_column": "column 3"}
    bare = Graph.of("t.tsv", structural="relations", **ends)
    assert bare.weights is None and np.allclose(bare.features.toarray(), expected)
    write_csv("weighted.csv", "head,relation,tail,weight", [(*row, 2.5) for row in rows])
    weighted = Graph.of("weighted.csv", structural="relations")
    assert weighted.weights is not None and np.allclose(weighted.features.toarray(), expected)


def test_relations_that_were_learned_from_are_those_of_new_graphs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_csv("t.csv", "head,relation,tail", [(n, "xyz"[n % 3], (7 * n + 1) % 30) for n in range(30)])
    given = ["--structural", "relations", "--threads", 1]
    answer(capsys, "fit", "t.csv", *given, "--out", "run")
    write_csv("new.csv", "head,relation,tail", [(0, "z", 40), (40, "new", 1), (1, "x", 2)])
    _, said = output(capsys, "embed", "run", "new.csv", "--out", "new.parquet")
    assert "not learned from are not counted: 1" in said
    output(capsys, "embed", "run", "t.csv", "--out", "same.parquet")
    same, own = (spgcl.open(path).vectors for path in ("same.parquet", "run"))
    assert np.array_equal(same, own) and len(spgcl.open("new.parquet")) == 4
    frame = pandas.read_csv("t.csv")
    with pytest.warns(spgcl.errors.Note):
        run = spgcl.fit(frame, structural="relations", out="kept", progress=False)
        assert np.array_equal(run.vectors, own) and len(run.embed(pandas.read_csv("new.csv"))) == 4
    assert spgcl.open("kept").evaluate()["channels"]


def test_relations_that_cannot_be_counted(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_csv("t.csv", "head,relation,tail", [("a", "x", "b"), ("b", "", "c")])
    write_csv("e.csv", "source,target", [("a", "b")])
    write_csv("two.csv", "source,target,one,two", [("a", "b", "c", "d")])
    write_csv("f.csv", "id,x", [(n, 1) for n in range(10)])
    write_csv("good.csv", "head,relation,tail", [(n, "x", n + 1) for n in range(9)])
    asked = ["--structural", "relations"]
    assert "t.csv, row 3, column 'relation'" in refusal(capsys, "inspect", "t.csv", *asked)
    for name in ("e.csv", "two.csv"):
        assert "--structural relations" in refusal(capsys, "inspect", name, *asked)
    assert "'relations'" in refusal(capsys, "inspect", "good.csv", "--features", "f.csv", *asked)
    assert "--hold-out-edges" in refusal(capsys, "fit", "good.csv", *asked, "--hold-out-edges", 0.4)
    assert "relations needs the graph in memory" in refusal(
        capsys, "ingest", "good.csv", *asked, "--out", "store"
    )
    with refusing("--structural relations"):
        Graph.of(np.array([[0, 1]]), structural="relations")


def test_a_graph_without_features_is_described(tmp_path, capsys):
    path = write_csv(tmp_path / "e.csv", "source,target", [("a", "b"), ("b", "c")])
    labels = write_csv(tmp_path / "l.csv", "id,kind", [("a", "x"), ("b", "y"), ("c", "x")])
    record = answer(capsys, "inspect", path)
    assert (
        record["features"] == 0 and record["nodes"] == 3 and "none" in record["without_labels"]["verdict"][0]
    )
    shown, _ = output(capsys, "inspect", path, "--labels", labels)
    assert "fastrp" in shown and "edge homophily" in shown and "transformed" not in shown
