"""Features of another graph meet those learned from by name; graphs of other kinds are refused."""

import numpy as np
import pytest
from scipy import sparse

from spgcl.errors import InputError
from spgcl.graph import Graph
from spgcl.io import match_features, read_graph, require_comparable, require_same_direction

EDGES = np.array([[0, 1], [1, 2]])


def make_graph(*names, matrix=None, directed=False):
    features = np.arange(9.0).reshape(3, 3) if matrix is None else matrix
    return Graph.from_edges(*EDGES, features, feature_names=names, directed=directed)


def test_the_same_order_and_names_missing_on_one_side_change_nothing():
    named, nameless = make_graph("a", "b", "c"), make_graph()
    assert match_features(named, ["a", "b", "c"]) is named
    assert match_features(named, []) is named
    assert match_features(nameless, ["a", "b", "c"]) is nameless


@pytest.mark.parametrize("sparsely", [False, True])
def test_another_order_is_mended_and_noted(sparsely):
    matrix = np.arange(9.0).reshape(3, 3)
    graph = make_graph("c", "a", "b", matrix=sparse.csr_array(matrix) if sparsely else matrix)
    matched = match_features(graph, ["a", "b", "c"])
    dense = matched.features.toarray() if sparsely else matched.features
    assert dense.tolist() == matrix[:, [1, 2, 0]].tolist() and matched.feature_names == ("a", "b", "c")
    assert matched.notes[-1].startswith("the feature columns are put in the order that was learned from")
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
    with pytest.raises(InputError) as caught:
        match_features(make_graph(*given), learned)
    assert f"not those that were learned from: {difference}; give the same columns" in str(caught.value)


def test_names_are_not_part_of_the_digest_and_are_one_a_column():
    assert make_graph("a", "b", "c").digest == make_graph().digest
    with pytest.raises(InputError, match="2 names for 3 feature columns; name all or none"):
        make_graph("a", "b")


def test_readers_know_the_names_of_columns(tmp_path):
    (tmp_path / "e.csv").write_text("source,target\n0,1\n1,2\n")
    (tmp_path / "f.csv").write_text("height,id,age\n1,0,2\n3,1,4\n5,2,6\n")
    (tmp_path / "g.csv").write_text("0,1,2\n1,3,4\n2,5,6\n")
    assert read_graph(tmp_path / "e.csv", tmp_path / "f.csv", id_column="id").feature_names == (
        "height",
        "age",
    )
    assert read_graph(tmp_path / "e.csv", tmp_path / "g.csv").feature_names == ()
    assert read_graph(tmp_path / "e.csv", np.eye(3)).feature_names == ()
    degree = read_graph(tmp_path / "e.csv", structural="degree")
    assert degree.feature_names[:2] == ("degree", "mean neighbour degree") and degree.num_features == 4
    arcs = read_graph(tmp_path / "e.csv", structural="degree", directed=True)
    assert len(set(arcs.feature_names)) == arcs.num_features == 8


def test_direction_has_to_be_the_same():
    require_same_direction(make_graph(), directed=False)
    require_same_direction(make_graph(directed=True), directed=True)
    with pytest.raises(InputError, match=r"is undirected, .* was directed; read it with directed=True"):
        require_same_direction(make_graph(), directed=True)
    with pytest.raises(InputError, match=r"is directed, .* was undirected; leave out directed=True"):
        require_same_direction(make_graph(directed=True), directed=False)


def test_eigenvectors_serve_their_own_graph_only():
    spectral = read_graph(EDGES.T, structural="spectral").feature_names
    require_comparable(spectral, same_graph=True)
    require_comparable(("a", "b"), same_graph=False)
    require_comparable((), same_graph=False)
    with pytest.raises(InputError, match=r"spectral features are eigenvectors .* --structural degree"):
        require_comparable(spectral, same_graph=False)


@pytest.mark.parametrize("sparsely", [False, True])
def test_features_that_are_all_zero_are_noted(sparsely):
    zeros, some = np.zeros((3, 2)), np.eye(3, 2)
    said = "all features are zero: methods that read them have nothing to learn from"
    for matrix, noted in ((zeros, True), (some, False)):
        given = sparse.csr_array(matrix) if sparsely else matrix
        assert (said in read_graph(EDGES, given).notes) == noted
    assert said not in read_graph(EDGES, structural="degree").notes
    stored = sparse.csr_array((np.zeros(1), ([0], [0])), shape=(3, 2))
    graph = read_graph(np.array([[0, 0], *EDGES]), stored)
    assert graph.notes[0] == "1 self loops dropped" and graph.notes[-1] == said
    # A note about features goes with them.
    assert said not in read_graph(graph, some).notes
    assert read_graph(graph, zeros).notes.count(said) == 1
