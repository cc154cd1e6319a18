import networkx
import numpy as np
import pytest
import torch
from graphs import arcs_of, refusing
from scipy import sparse
from torch_geometric.data import Batch, Data, HeteroData

from spgcl.errors import Note
from spgcl.graph import Graph
from spgcl.io import read_graph


def refused(part, *arguments, **options):
    with refusing(part):
        read_graph(*arguments, **options)


PATH = torch.tensor([[0, 1], [1, 2]])
BOTH_WAYS = {(0, 1): 1, (1, 0): 1, (1, 2): 1, (2, 1): 1}


class Holder:
    def __init__(self, graph):
        self.graph = graph


def test_graphs_and_their_holders_come_back_as_they_are():
    graph = Graph.from_edges(np.array([0]), np.array([1]), np.eye(3), node_ids=["a", "b", "c"])
    assert read_graph(graph) is graph and read_graph(Holder(graph)) is graph and Graph.of(graph) is graph
    other = read_graph(graph, 2 * np.eye(3))
    assert other.features[0, 0] == 2 and other.node_ids.tolist() == ["a", "b", "c"]
    assert arcs_of(other) == arcs_of(graph)
    refused("already undirected", graph, directed=True)
    refused("leave out structural 'degree'", graph, structural="degree")
    refused("source_column='a' does not apply", graph, source_column="a")
    refused("expected 3 feature rows, one per node; found 2", graph, np.eye(2))


def test_pyg_data():
    graph = read_graph(Data(x=torch.eye(4), edge_index=PATH, y=torch.arange(4)))
    assert arcs_of(graph) == BOTH_WAYS and graph.num_nodes == 4 and graph.node_ids.tolist() == [0, 1, 2, 3]
    assert arcs_of(read_graph(Data(x=torch.eye(4), edge_index=PATH), directed=True)) == {(0, 1): 1, (1, 2): 1}
    half = read_graph(Data(x=torch.eye(4, dtype=torch.bfloat16, requires_grad=True), edge_index=PATH))
    assert half.features.dtype == np.float32


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support:UserWarning")
def test_pyg_sparse_features_and_adjacency():
    for features in (torch.eye(3).to_sparse(), torch.eye(3).to_sparse_csr()):
        graph = read_graph(Data(x=features, edge_index=PATH))
        assert sparse.issparse(graph.features) and (graph.features.toarray() == np.eye(3)).all()
    arcs = torch.sparse_coo_tensor(PATH.flip(0), torch.tensor([2.0, 3.0]), (3, 3), check_invariants=True)
    graph = read_graph(Data(x=torch.eye(3), adj_t=arcs.to_sparse_csr()), directed=True)
    assert arcs_of(graph) == {(0, 1): 2, (1, 2): 3}


def test_pyg_weights():
    for name, values in {"edge_weight": [2.0, 3.0], "edge_attr": [[2.0], [3.0]]}.items():
        graph = read_graph(Data(x=torch.eye(3), edge_index=PATH, **{name: torch.tensor(values)}))
        assert arcs_of(graph) == {(0, 1): 2, (1, 0): 2, (1, 2): 3, (2, 1): 3}
        assert f"{name} used as edge weights" in graph.notes
    many = Data(x=torch.eye(3), edge_index=PATH, edge_attr=torch.ones(2, 4))
    refused("edge_attr has shape (2, 4) for 2 edges", many)


def test_pyg_without_features():
    assert read_graph(Data(edge_index=PATH, num_nodes=5), structural="degree").num_nodes == 5
    assert read_graph(Data(edge_index=PATH), np.eye(3)).num_features == 3
    assert read_graph(Data(edge_index=PATH), structural="degree").num_nodes == 3
    refused("no features", Data(edge_index=PATH))


def test_pyg_data_that_is_not_one_graph():
    several = HeteroData()
    several["paper"].x = torch.eye(2)
    refused("data = data.to_homogeneous()", several)
    data = Data(x=torch.eye(3), edge_index=PATH)
    refused("batch[0]", Batch.from_data_list([data, data]))
    refused("delete edge_type", Data(x=torch.eye(3), edge_index=PATH, edge_type=torch.tensor([0, 1])))
    refused("no edge_index", Data(x=torch.eye(3)))
    refused("node 2, but the graph has 2 nodes (0 to 1)", Data(x=torch.eye(2), edge_index=PATH))
    refused("node -2, but the graph has 2 nodes (0 to 1)", Data(x=torch.eye(2), edge_index=PATH - 2))
    refused("edge_index needs integers of shape (2, E), not float32", Data(edge_index=PATH.float()))
    refused("adj_t is a str", Data(x=torch.eye(3), adj_t="SparseTensor"))


def test_weights_of_objects_are_ignored_on_request():
    arcs = sparse.csr_array(([2.0, 0.0, 3.0], ([0, 0, 1], [1, 2, 2])), shape=(3, 3))
    graph = read_graph(arcs, np.eye(3), weight_column="none")
    assert graph.weights is None and arcs_of(graph) == BOTH_WAYS
    for attributes in (torch.ones(2, 5), torch.tensor([-1.0, 2.0])):
        data = Data(x=torch.eye(3), edge_index=PATH, edge_attr=attributes)
        graph = read_graph(data, weight_column="none")
        assert graph.weights is None and "edge_attr ignored" in graph.notes
    assert read_graph([[0, 1], [1, 2], [0, 2]], np.eye(3), weight_column="none").weights is None
    refused("weight_column='w' does not apply to a Data", data, weight_column="w")


def test_networkx_with_attributes_and_weights():
    network = networkx.Graph()
    network.add_node("anna", age=30, position=[1, 2])
    network.add_node("bo", age=True, position=np.array([3, 4]))
    network.add_node("alone", age=1.5, position=(5, 6))
    network.add_edge("bo", "anna", weight=2, since=1999)
    graph = read_graph(network, feature_attributes=["position", "age"])
    assert graph.node_ids.tolist() == ["anna", "bo", "alone"]
    assert graph.features.tolist() == [[1, 2, 30], [3, 4, 1], [5, 6, 1.5]]
    assert arcs_of(graph) == {(0, 1): 2, (1, 0): 2}
    assert graph.notes == (
        "edge attributes ignored: since",
        "edge attribute 'weight' used as edge weights; --weight none ignores them",
    )
    assert graph.feature_names == ("position[0]", "position[1]", "age")
    assert arcs_of(read_graph(network, np.eye(3), weight_column="since")) == {(0, 1): 1999, (1, 0): 1999}
    unweighted = read_graph(network, np.eye(3), weight_column="none")
    assert unweighted.weights is None and "edge attributes ignored: since, weight" in unweighted.notes
    refused("'length'; choose from: since, weight, none", network, np.eye(3), weight_column="length")
    with refusing("no features", "--features FILE", "--attributes age,position", "--structural degree"):
        read_graph(network)


def test_networkx_direction_and_parallel_edges():
    arcs = networkx.DiGraph([(5, 3), (3, 9)])
    with pytest.warns(Note, match="the DiGraph is read as undirected"):
        graph = read_graph(arcs, structural="degree")
    assert graph.node_ids.tolist() == [5, 3, 9] and arcs_of(graph) == BOTH_WAYS
    assert "2 edges listed one way only now go both ways" in graph.notes[0]
    assert arcs_of(read_graph(arcs, structural="degree", directed=True)) == {(0, 1): 1, (1, 2): 1}
    parallel = networkx.MultiGraph()
    parallel.add_edge(0, 1, weight=2)
    parallel.add_edge(1, 0, weight=3)
    parallel.add_edge(1, 1, weight=1)
    graph = read_graph(parallel, structural="degree")
    assert arcs_of(graph) == {(0, 1): 5, (1, 0): 5} and "1 parallel edges merged" in graph.notes
    refused("undirected; leave directed out", parallel, structural="degree", directed=True)


def test_networkx_features_from_a_table(tmp_path):
    (tmp_path / "f.csv").write_text("id,x\nb,1\na,2\n")
    graph = read_graph(networkx.Graph([("a", "b")]), tmp_path / "f.csv")
    assert graph.node_ids.tolist() == ["b", "a"] and graph.features.tolist() == [[1], [2]]
    refused("node 'c' is not in", networkx.Graph([("a", "c")]), tmp_path / "f.csv")


def test_networkx_refusals():
    network = networkx.Graph()
    network.add_node(0, colour="red", size=1, shape=[1, 2])
    network.add_node(1, colour="blue", shape=[1])
    network.add_edge(0, 1)
    refused("node 0: colour='red' is not", network, feature_attributes=["colour"])
    refused("node 1: size=None", network, feature_attributes=["size"])
    refused("node 1: 'shape' has 1 numbers, but 2", network, feature_attributes=["shape"])
    refused("unknown node attribute 'sizes'; did you mean 'size'?", network, feature_attributes=["sizes"])
    refused("unknown edge attribute 'w'", network, structural="degree", weight_column="w")
    network.add_edge(1, 2, weight="heavy")
    refused("edge (0, 1) has weight None", network, structural="degree")
    network.add_edge(0, 1, weight=-1)
    refused("edge (0, 1) has weight -1", network, structural="degree")
    refused("the graph has no nodes", networkx.Graph(), structural="degree")
    refused("the graph has no edges", networkx.empty_graph(3), structural="degree")
    refused("node id '1' appears 2 times", networkx.Graph([(1, "1")]), structural="degree")


def test_scipy_adjacency():
    ones = sparse.csr_matrix(([1, 1], ([0, 1], [1, 2])), shape=(4, 4))
    for graph in (
        read_graph(ones, np.eye(4)),
        read_graph((ones, sparse.eye_array(4))),
        Graph.of((ones, np.eye(4))),
    ):
        assert arcs_of(graph) == BOTH_WAYS and graph.num_nodes == 4 and graph.weights is None
    weighted = read_graph(
        sparse.coo_array(([2, 0, 5], ([0, 1, 1], [1, 2, 3])), shape=(4, 4)), np.eye(4), directed=True
    )
    assert arcs_of(weighted) == {(0, 1): 2, (1, 3): 5}
    assert weighted.notes == (
        "1 stored zeros of the adjacency matrix are no edges",
        "values of the adjacency matrix used as edge weights",
    )
    refused("shape (2, 3)", sparse.csr_array(np.ones((2, 3))), np.eye(2))
    refused("has weight -1.0", sparse.csr_array(-np.ones((2, 2))), np.eye(2))
    refused("complex128", sparse.csr_array(np.eye(2) * 1j), np.eye(2))
    refused("features are given twice", (ones, np.eye(4)), np.eye(4))
    refused("expected 4 feature rows, one per node; found 3", ones, np.eye(3))


def test_edge_arrays_of_both_shapes():
    rows = np.array([[0, 1], [1, 2], [2, 1]])
    for edges in (rows, rows.T, rows.tolist(), torch.from_numpy(rows), torch.from_numpy(rows.T.copy())):
        assert arcs_of(read_graph(edges, np.eye(3))) == BOTH_WAYS
    assert arcs_of(read_graph((rows, np.eye(3)))) == BOTH_WAYS
    assert read_graph([("b", "a"), ("b", "c")], structural="degree").node_ids.tolist() == ["a", "b", "c"]
    assert read_graph(np.array([[10, 20]]), structural="degree").node_ids.tolist() == [10, 20]


def test_two_by_two_edges_are_rows_in_arrays_and_columns_in_tensors():
    pairs = np.array([[0, 1], [2, 1]])
    by_row = read_graph(pairs, np.eye(3))
    by_column = read_graph(torch.from_numpy(pairs), np.eye(3))
    assert arcs_of(by_row) == BOTH_WAYS
    assert arcs_of(by_column) == {(0, 2): 1, (2, 0): 1}
    assert "edges of shape (2, 2) read as one edge per row" in by_row.notes
    assert "edges of shape (2, 2) read as one edge per column" in by_column.notes


def test_broken_edge_arrays_and_strangers():
    refused("edge 1: node 3 is not in the features (nodes 0 to 2)", [[0, 1], [1, 3], [0, 1]], np.eye(3))
    refused("edge 0: node -1 is not in the features", [[-1, 1], [1, 2], [0, 1]], np.eye(3))
    refused("not (3, 3)", np.zeros((3, 3)), np.eye(3))
    refused("edges must be pairs of node ids", [[0, 1], [1]], np.eye(3))
    refused("float64", np.ones((3, 2)), np.eye(3))
    refused("cannot read a graph from a dict", {})
    refused("weight_column='w' does not apply to a ndarray", np.ones((3, 2)), weight_column="w")
    refused("feature row 0, column 0 is nan", [[0, 1], [1, 2], [0, 1]], np.full((3, 1), np.nan))


def test_features_as_a_tensor():
    assert read_graph([[0, 1], [1, 2], [0, 1]], torch.eye(3)).num_features == 3
