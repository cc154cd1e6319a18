from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from graphs import arcs_of, refusing
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from spgcl.errors import InputError
from spgcl.graph import Graph

QUICK = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def check_invariants(graph):
    num_nodes = graph.num_nodes
    assert graph.rows[0] == 0 and graph.rows[-1] == len(graph.columns) > 0
    assert (np.diff(graph.rows) >= 0).all()
    assert graph.columns.min() >= 0 and graph.columns.max() < num_nodes
    sources = np.repeat(np.arange(num_nodes), graph.degrees)
    assert (sources != graph.columns).all(), "self loop"
    codes = sources * num_nodes + graph.columns
    assert (np.diff(codes) > 0).all(), "unsorted or repeated"
    if not graph.directed:
        assert set(codes) == set(graph.columns.astype(np.int64) * num_nodes + sources)
        assert (graph.adjacency != graph.adjacency.T).nnz == 0
    assert graph.features.dtype == np.float32 and graph.features.shape == (num_nodes, graph.num_features)
    values = graph.features.data if sparse.issparse(graph.features) else graph.features
    assert graph.num_features > 0 and np.isfinite(values).all()
    assert len(graph.node_ids) == len(set(graph.node_ids.tolist())) == num_nodes
    assert graph.node_ids.dtype in (np.int64, object)
    arrays = [graph.rows, graph.columns, graph.node_ids, values]
    if graph.weights is not None:
        assert graph.weights.dtype == np.float32 and len(graph.weights) == len(graph.columns)
        assert np.isfinite(graph.weights).all() and (graph.weights > 0).all()
        arrays.append(graph.weights)
    assert not any(array.flags.writeable for array in arrays)


def naive_edges(edges, weights, directed):
    """Repeated edges add up within a direction; of two directions an undirected graph keeps the larger."""
    arcs = {}
    for (start, end), weight in zip(edges, weights, strict=True):
        if start != end:
            arcs[start, end] = arcs.get((start, end), 0) + weight
    if directed:
        return arcs
    return {
        pair: max(arcs.get(pair, 0), arcs.get(pair[::-1], 0))
        for start, end in arcs
        for pair in ((start, end), (end, start))
    }


pairs = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=25)


@QUICK
@given(edges=pairs, data=st.data(), directed=st.booleans(), weighted=st.booleans())
def test_edges_weights_and_direction_match_a_dictionary(edges, data, directed, weighted):
    # Small integers: sums are exact in float32, so that equality can be asked for.
    weights = data.draw(st.lists(st.integers(1, 9), min_size=len(edges), max_size=len(edges)))
    expected = naive_edges(edges, weights, directed)
    sources, targets = np.array(edges).T
    given_weights = np.array(weights) if weighted else None
    if not expected:
        with pytest.raises(InputError, match="no edges"):
            Graph.from_edges(sources, targets, np.ones((6, 1)), weights=given_weights, directed=directed)
        return
    graph = Graph.from_edges(sources, targets, np.ones((6, 1)), weights=given_weights, directed=directed)
    check_invariants(graph)
    assert arcs_of(graph) == (expected if weighted else dict.fromkeys(expected, 1))
    assert graph.num_edges == (len(expected) if directed else len(expected) / 2)


def mostly(valid, *broken):
    """Valid three times out of four, so that several arguments together still often make a graph."""
    return st.integers(0, 3).flatmap(lambda draw: st.one_of(*broken) if draw == 0 else valid)


numbers = st.one_of(st.integers(-2, 7), st.sampled_from([1.5, np.nan, np.inf, -1e300, "a", "7", None]))
ends = mostly(
    st.lists(st.integers(0, 4), min_size=3, max_size=3),
    st.lists(numbers, max_size=8),
    st.lists(st.integers(0, 4), max_size=8),
    st.just(np.array([2**63, 1, 0], dtype=np.uint64)),
    st.just([[0, 1], [2]]),
)
matrices = mostly(
    st.sampled_from(
        [
            np.eye(5),
            sparse.eye_array(5),
            sparse.coo_array(([1.0, 2.0, 3.0], ([0, 0, 1], [0, 0, 1])), shape=(5, 2)),
            np.eye(5, dtype=np.int8).tolist(),
        ]
    ),
    st.sampled_from(
        [
            sparse.csr_array(([1.0, np.nan], [0, 1], [0, 1, 2]), shape=(2, 2)),
            np.ones((5, 2), dtype=complex),
            np.zeros((5, 0)),
            np.zeros((0, 3)),
            np.full((5, 1), 1e300),
        ]
    ),
    st.lists(st.lists(numbers, max_size=3), max_size=6),
)
weight_lists = mostly(
    st.sampled_from([None, [0.5, 1, 2]]), st.lists(numbers, max_size=8), st.just([3e38, 3e38, 3e38])
)
id_lists = mostly(
    st.sampled_from([None, [3, 1, 4, 15, 9], ["a", "b", "c", "d", "e"]]), st.lists(numbers, max_size=6)
)


@QUICK
@given(ends, ends, matrices, weight_lists, id_lists, st.booleans())
def test_from_edges_gives_a_valid_graph_or_an_input_error(sources, targets, features, weights, ids, directed):
    try:
        graph = Graph.from_edges(sources, targets, features, weights=weights, node_ids=ids, directed=directed)
    except InputError as error:
        assert "\n" not in str(error)
        return
    check_invariants(graph)


sources_of_any_kind = mostly(
    st.one_of(
        st.tuples(ends, ends).map(list),
        st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=6).map(np.array),
        st.just(sparse.csr_array(np.arange(25).reshape(5, 5))),
        st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1, max_size=6),
    ),
    st.lists(st.tuples(numbers, numbers), max_size=6),
    st.just(sparse.csr_array(-np.eye(5))),
    st.just(sparse.csr_array(np.ones((2, 5)))),
    st.just((sparse.csr_array(np.ones((5, 5))), np.eye(5))),
    st.sampled_from([None, 7, "", "cora", "missing.csv", b"bytes", {}, np.zeros((3, 3)), np.array(3)]),
)


@QUICK
@given(
    sources_of_any_kind,
    st.one_of(st.none(), matrices, st.just("missing.npy")),
    st.sampled_from([None, "degree", "spectral", "magic"]),
    st.booleans(),
)
def test_of_gives_a_valid_graph_or_an_input_error(source, features, structural, directed):
    try:
        graph = Graph.of(source, features, structural=structural, directed=directed)
    except InputError as error:
        assert "\n" not in str(error)
        return
    check_invariants(graph)


cells = st.sampled_from(["0", "1", "2", "3", "x", "", "1.5", "nan", '"', "é", "#", "source"])
digits = st.sampled_from("0123")
any_rows = st.lists(st.lists(cells, min_size=1, max_size=4), max_size=8)
edge_rows = mostly(st.lists(st.lists(digits, min_size=2, max_size=2), min_size=1, max_size=8), any_rows)
feature_rows = mostly(
    st.lists(st.lists(digits, min_size=2, max_size=2), min_size=4, max_size=4).map(
        lambda rows: [[str(node), *row] for node, row in enumerate(rows)]
    ),
    any_rows,
)


@QUICK
@given(edge_rows, feature_rows, st.sampled_from(",\t "), st.sampled_from([None, "degree"]))
def test_files_of_any_content_give_a_valid_graph_or_an_input_error(
    tmp_path_factory, edges, features, delimiter, structural
):
    folder = tmp_path_factory.mktemp("any")
    (folder / "edges.csv").write_text("\n".join(delimiter.join(row) for row in edges), encoding="utf-8")
    (folder / "features.csv").write_text("\n".join(",".join(row) for row in features), encoding="utf-8")
    try:
        given_features = None if structural else folder / "features.csv"
        graph = Graph.of(folder / "edges.csv", given_features, structural=structural)
    except InputError as error:
        assert str(folder) in str(error) and "\n" not in str(error)
        return
    check_invariants(graph)


def triangle(**options):
    return Graph.from_edges(np.array([0, 1, 2]), np.array([1, 2, 0]), np.eye(3, dtype=np.float32), **options)


def test_isolated_nodes_stay_and_counts_are_of_pairs():
    graph = Graph.from_edges(np.array([0, 1]), np.array([1, 0]), np.eye(4))
    assert (graph.num_nodes, graph.num_edges, graph.degrees.tolist()) == (4, 1, [1, 1, 0, 0])
    assert graph.notes == ()


def test_notes_tell_what_changed():
    graph = Graph.from_edges(np.array([0, 0, 0, 1]), np.array([0, 1, 1, 2]), np.eye(3), notes=["first"])
    assert graph.notes == (
        "first",
        "1 self loops dropped",
        "1 repeated edges merged",
        "2 edges listed one way only now go both ways (directed=True or --directed keeps them)",
    )


def test_a_graph_cannot_be_changed_and_does_not_freeze_or_follow_the_callers_arrays():
    features, values = np.ones((3, 2), dtype=np.float32), sparse.csr_array(np.eye(3, dtype=np.float32))
    dense = Graph.from_edges(np.array([0]), np.array([1]), features)
    thin = Graph.from_edges(np.array([0]), np.array([1]), values)
    features[0, 0] = 7
    values.data[0] = 7
    assert dense.features[0, 0] == 1 and thin.features[0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        dense.features[0, 0] = 2
    with pytest.raises(FrozenInstanceError):
        dense.directed = True


def test_read_only_features_are_shared_not_copied():
    features = np.ones((3, 2), dtype=np.float32)
    features.setflags(write=False)
    assert np.shares_memory(Graph.from_edges(np.array([0]), np.array([1]), features).features, features)


def test_the_digest_sees_everything_that_matters_and_nothing_else():
    plain = triangle()
    others = [
        triangle(directed=True),
        triangle(weights=[1.0, 1.0, 2.0]),
        triangle(node_ids=["0", "1", "2"]),
        triangle(node_ids=[0, 1, 3]),
        triangle().with_features(2 * np.eye(3)),
        triangle().without_edges(np.array([0]), np.array([1])),
    ]
    assert len({graph.digest for graph in [plain, *others]}) == 7
    assert triangle(notes=["another way"]).digest == plain.digest
    joined = [triangle(node_ids=ids).digest for ids in (["a\x1fb", "c", "d"], ["a", "b\x1fc", "d"])]
    assert joined[0] != joined[1]


def test_index_of_finds_ids_and_tells_what_they_look_like():
    assert triangle(node_ids=[10, 20, 30]).index_of("20") == 1
    assert triangle(node_ids=["a", "b", "c"]).index_of("c") == 2
    with refusing("no node 'x'", "10"):
        triangle(node_ids=[10, 20, 30]).index_of("x")


def test_without_edges_removes_both_directions_and_keeps_weights():
    graph = triangle(weights=[1.0, 2.0, 3.0]).without_edges(np.array([2, 2]), np.array([1, 1]))
    assert arcs_of(graph) == {(0, 1): 1, (1, 0): 1, (0, 2): 3, (2, 0): 3}
    arcs = triangle(directed=True).without_edges(np.array([1, 0]), np.array([0, 2]))
    assert arcs_of(arcs) == {(0, 1): 1, (1, 2): 1, (2, 0): 1}
    with refusing("node 9"):
        graph.without_edges(np.array([9]), np.array([0]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sources": [0, 9]}, "node 9, but the graph has 3 nodes (0 to 2)"),
        ({"sources": [0, -1]}, "node -1, but the graph has 3 nodes (0 to 2)"),
        ({"sources": [0]}, "edges have 1 sources but 2 targets"),
        ({"sources": [0.0, 1.0]}, "float64 (2,)"),
        ({"features": [[1, 2], [np.inf, 0], [0, 0]]}, "feature row 1, column 0 is inf"),
        ({"features": sparse.csr_array([[1, 0], [0, np.nan], [0, 0]])}, "feature row 1, column 1 is nan"),
        ({"features": [["red"], [1], [2]]}, "features must be numbers"),
        ({"features": [1, 2, 3]}, "shape (3,)"),
        ({"features": np.zeros((3, 0))}, "--structural degree|spectral"),
        ({"weights": [1, 0]}, "edge 1 has weight 0.0"),
        ({"weights": [1]}, "2 edges but weights of shape (1,)"),
        ({"node_ids": ["a", "b", "a"]}, "node id 'a' appears 2 times"),
        ({"node_ids": [1, 2]}, "3 nodes but node ids of shape (2,)"),
    ],
)
def test_wrong_arrays_are_refused_by_value(change, message):
    arguments = {"sources": [0, 1], "targets": [1, 2], "features": np.eye(3), **change}
    with refusing(message):
        Graph.from_edges(**arguments)


def test_sparse_features_are_never_made_dense():
    shape = (50_000, 100_000)  # 20 GB when dense
    features = sparse.csr_array((np.ones(3), ([0, 1, 2], [5, 6, 7])), shape=shape)
    graph = Graph.from_edges(np.array([0]), np.array([1]), features)
    assert sparse.issparse(graph.features) and graph.features.nnz == 3
    assert graph.digest and repr(graph) == "Graph(50,000 nodes, 1 undirected edges, 100,000 sparse features)"
