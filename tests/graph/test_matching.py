"""Features of another graph are matched by name; graphs of another kind are refused."""

import numpy as np
import pytest
from graphs import refusing
from scipy import sparse

from spgcl.graph import Graph
from spgcl.graph.matching import match_features, require_comparable, require_same_direction
from spgcl.io import read_graph

EDGES = np.array([[0, 1], [1, 2]])


def named(*names, matrix=None, directed=False):
    features = np.arange(9.0).reshape(3, 3) if matrix is None else matrix
    return Graph.from_edges(*EDGES, features, feature_names=names, directed=directed)


def test_the_same_order_and_names_missing_on_one_side_change_nothing():
    abc, nameless = named("a", "b", "c"), named()
    assert match_features(abc, ["a", "b", "c"]) is abc
    assert match_features(abc, []) is abc
    assert match_features(nameless, ["a", "b", "c"]) is nameless


@pytest.mark.parametrize("sparsely", [False, True])
def test_another_order_is_corrected_and_noted(sparsely):
    matrix = np.arange(9.0).reshape(3, 3)
    graph = named("c", "a", "b", matrix=sparse.csr_array(matrix) if sparsely else matrix)
    matched = match_features(graph, ["a", "b", "c"])
    dense = matched.features.toarray() if sparsely else matched.features
    assert dense.tolist() == matrix[:, [1, 2, 0]].tolist() and matched.feature_names == ("a", "b", "c")
    assert len(matched.notes) == len(graph.notes) + 1
    assert match_features(matched, graph.feature_names).digest == graph.digest


@pytest.mark.parametrize(
    ("given", "learned", "difference"),
    [
        (("a", "b", "d"), ("a", "b", "c"), "'c' missing, 'd' new"),
        (("a", "b", "c"), ("a", "b"), "'c' new"),
        (("a", "b", "c"), ("a", "b", "c", "d"), "'d' missing"),
        (("a", "b", "b"), ("b", "b", "a"), "a name appears twice"),
        (("a", "b", "c"), tuple("abcdefgh"), "'d', 'e', 'f' and 2 more missing"),
    ],
)
def test_other_columns_are_refused_by_name(given, learned, difference):
    with refusing(f": {difference};"):
        match_features(named(*given), learned)


def test_names_are_not_part_of_the_digest_and_are_one_per_column():
    assert named("a", "b", "c").digest == named().digest
    with refusing("2 names for 3 feature columns"):
        named("a", "b")


def test_readers_know_the_names_of_columns(tmp_path):
    (tmp_path / "e.csv").write_text("source,target\n0,1\n1,2\n")
    (tmp_path / "f.csv").write_text("height,id,age\n1,0,2\n3,1,4\n5,2,6\n")
    (tmp_path / "g.csv").write_text("0,1,2\n1,3,4\n2,5,6\n")
    heights = read_graph(tmp_path / "e.csv", tmp_path / "f.csv", id_column="id")
    assert heights.feature_names == ("height", "age")
    assert read_graph(tmp_path / "e.csv", tmp_path / "g.csv").feature_names == ()
    assert read_graph(tmp_path / "e.csv", np.eye(3)).feature_names == ()
    degree = read_graph(tmp_path / "e.csv", structural="degree")
    assert degree.feature_names[:2] == ("degree", "mean neighbour degree") and degree.num_features == 4
    arcs = read_graph(tmp_path / "e.csv", structural="degree", directed=True)
    assert len(set(arcs.feature_names)) == arcs.num_features == 8


def test_direction_has_to_be_the_same():
    require_same_direction(named(), directed=False)
    require_same_direction(named(directed=True), directed=True)
    with refusing("is undirected", "was directed", "read it with directed=True"):
        require_same_direction(named(), directed=True)
    with refusing("is directed", "was undirected", "leave out directed=True"):
        require_same_direction(named(directed=True), directed=False)


def test_eigenvectors_serve_their_own_graph_only():
    spectral = read_graph(EDGES.T, structural="spectral").feature_names
    require_comparable(spectral, same_graph=True)
    require_comparable(("a", "b"), same_graph=False)
    require_comparable((), same_graph=False)
    with refusing("--structural degree"):
        require_comparable(spectral, same_graph=False)


@pytest.mark.parametrize("sparsely", [False, True])
def test_features_that_are_all_zero_are_noted(sparsely):
    zeros, some = np.zeros((3, 2)), np.eye(3, 2)
    note = "all features are zero: methods that read them have nothing to learn from"
    for matrix, noted in ((zeros, True), (some, False)):
        given = sparse.csr_array(matrix) if sparsely else matrix
        assert (note in read_graph(EDGES, given).notes) == noted
    assert note not in read_graph(EDGES, structural="degree").notes
    stored = sparse.csr_array((np.zeros(1), ([0], [0])), shape=(3, 2))
    graph = read_graph(np.array([[0, 0], *EDGES]), stored)
    assert graph.notes[0] == "1 self loops dropped" and graph.notes[-1] == note
    # A note about features goes with them.
    assert note not in read_graph(graph, some).notes
    assert read_graph(graph, zeros).notes.count(note) == 1
