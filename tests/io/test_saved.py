import os
import pickle
from pathlib import Path

import networkx
import numpy as np
import pytest
import torch
from graphs import refusing
from torch_geometric.data import Batch, Data, HeteroData

from spgcl.io import read_graph

PATH = torch.tensor([[0, 1], [1, 2]])


def refused(path, part, **options):
    with refusing(path, part):
        read_graph(path, **options)


@pytest.mark.parametrize("name", ["data.pt", "data.pth"])
def test_data_saved_by_torch(tmp_path, name):
    data = Data(x=torch.eye(4), edge_index=PATH, y=torch.arange(4), edge_weight=torch.tensor([2.0, 3.0]))
    torch.save(data, tmp_path / name)
    graph = read_graph(tmp_path / name)
    assert (graph.num_nodes, graph.num_edges, graph.weights.tolist()) == (4, 2, [2, 2, 3, 3])
    assert read_graph(tmp_path / name, weight_column="none").weights is None


def test_dictionaries_and_data_sets_of_one_graph(tmp_path):
    attributes = {"x": torch.eye(3), "edge_index": PATH}
    for saved in (attributes, (attributes, None, Data), (Data(**attributes), None)):
        torch.save(saved, tmp_path / "data.pt")
        assert read_graph(tmp_path / "data.pt").num_edges == 2


class Planted:
    def __reduce__(self):
        return os.system, ("touch planted",)


@pytest.mark.parametrize("plain", [True, False])
def test_a_planted_pickle_is_refused_and_not_run(tmp_path, monkeypatch, plain):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "data.pt"
    if plain:
        path.write_bytes(pickle.dumps(Planted(), protocol=2))
    else:
        torch.save(Data(x=torch.eye(3), edge_index=PATH, extra=Planted()), path)
    refused(path, f"refused, it would load {os.system.__module__}.system")
    assert not Path("planted").exists()


def test_broken_saved_data(tmp_path):
    path = tmp_path / "data.pt"
    several = HeteroData()
    several["paper"].x = torch.eye(2)
    torch.save(several, path)
    refused(path, "HeteroData")
    data = Data(x=torch.eye(3), edge_index=PATH)
    torch.save(Batch.from_data_list([data, data]), path)
    refused(path, "refused, it would load torch_geometric.data.batch.")
    torch.save(Data(x=torch.eye(2), edge_index=PATH), path)
    refused(path, "node 2, but the graph has 2 nodes")
    torch.save(Data(x=torch.full((3, 1), torch.nan), edge_index=PATH), path)
    refused(path, "feature row 0, column 0 is nan")
    torch.save(torch.eye(3), path)
    refused(path, "holds a Tensor")
    torch.save({"x": 3, "edge_index": PATH}, path)
    refused(path, "not a readable PyTorch Geometric Data")
    torch.save(data, path)
    path.write_bytes(path.read_bytes()[:300])
    refused(path, "not a readable file of torch.save")
    path.write_text("0,1\n")
    refused(path, "not a readable file of torch.save")
    refused(tmp_path / "absent.pt", "no such file")
    refused(path, "source_column='a' does not apply to", source_column="a")


def test_heterophilous_archive(tmp_path):
    path = tmp_path / "graph.npz"
    edges = np.array([[0, 1], [1, 2]])
    np.savez(
        path, node_features=np.eye(4), edges=edges, node_labels=np.zeros(4), train_masks=np.ones((10, 4))
    )
    graph = read_graph(path)
    assert (graph.num_nodes, graph.num_edges, graph.degrees.tolist()) == (4, 2, [1, 2, 1, 0])
    assert read_graph(path, directed=True).degrees.tolist() == [1, 1, 0, 0]
    np.savez(path, node_features=np.eye(2), edges=edges)
    refused(path, "node 2, but the graph has 2 nodes (0 to 1)")
    np.savez(path, node_features=np.eye(4), edges=edges.astype(float))
    refused(path, "'edges' needs integers of shape (E, 2), not float64")
    np.savez(path, node_features=np.ones(4), edges=edges)
    refused(path, "'node_features' needs two dimensions, not shape (4,)")
    np.savez(path, features=np.eye(4), links=edges)
    refused(path, "'node_features' and 'edges', found features, links")
    np.savez(path, node_features=np.array([[None]], dtype=object), edges=edges)
    refused(path, "not a readable NumPy archive")
    np.savez(path, node_features=np.eye(4), edges=edges)
    path.write_bytes(path.read_bytes()[:100])
    refused(path, "not a readable NumPy archive")


def test_graphml(tmp_path):
    path = tmp_path / "graph.graphml"
    network = networkx.DiGraph()
    network.add_node(7, age=1.0)
    network.add_node(3, age=2.0)
    network.add_edge(7, 3, weight=2.5)
    networkx.write_graphml(network, path)
    graph = read_graph(path, feature_attributes=["age"])
    assert graph.node_ids.tolist() == [7, 3] and graph.features.tolist() == [[1], [2]]
    assert graph.weights.tolist() == [2.5, 2.5]
    assert read_graph(path, structural="degree", directed=True).degrees.tolist() == [1, 0]
    refused(path, "no features")
    refused(path, "unknown node attribute 'size'", feature_attributes=["size"])
    networkx.write_graphml(networkx.Graph([("a", "b")]), path)
    assert read_graph(path, structural="degree").node_ids.tolist() == ["a", "b"]
    path.write_text(path.read_text()[:-30])
    refused(path, "not a readable GraphML file")
    path.write_text("<graphml></graphml>")
    refused(path, "not a readable GraphML file")


@pytest.mark.parametrize(
    ("name", "num_nodes", "num_edges"), [("chameleon-filtered", 890, 8854), ("minesweeper", 10_000, 39_402)]
)
def test_published_archives(benchmark_folder, name, num_nodes, num_edges):
    path = next((benchmark_folder / name).glob(f"*{name.replace('-', '_')}*.npz"))
    graph = read_graph(path)
    assert (graph.num_nodes, graph.num_edges) == (num_nodes, num_edges)


def test_a_published_edge_list(benchmark_folder):
    graph = read_graph(benchmark_folder / "twitch-de" / "musae_DE_edges.csv", structural="degree")
    assert (graph.num_nodes, graph.num_edges) == (9498, 153_138)
