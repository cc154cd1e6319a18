"""Formats of graphs that other programs write: matrices, networks, Feather, triples, two sides."""

import json

import networkx
import numpy as np
import pyarrow as pa
import pytest
from commands import answer, output, refusal
from graphs import arcs_of, refusing, write_csv
from pyarrow import feather
from scipy import io, sparse

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


def test_a_graph_without_features_is_described(tmp_path, capsys):
    path = write_csv(tmp_path / "e.csv", "source,target", [("a", "b"), ("b", "c")])
    labels = write_csv(tmp_path / "l.csv", "id,kind", [("a", "x"), ("b", "y"), ("c", "x")])
    record = answer(capsys, "inspect", path)
    assert (
        record["features"] == 0 and record["nodes"] == 3 and "none" in record["without_labels"]["verdict"][0]
    )
    shown, _ = output(capsys, "inspect", path, "--labels", labels)
    assert "fastrp" in shown and "edge homophily" in shown and "transformed" not in shown
