"""What is said of a graph on disk is what is said of it in memory, or an estimate that says so."""

import numpy as np
import pytest
from commands import answer, output, refusal
from graphs import write_csv
from stores import graph_and_store

from spgcl.evaluation.statistics import describe
from spgcl.scale.describe import describe_store
from spgcl.scale.sample import sampled_graph

ON_DISK = ("--memory", "1KiB")


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("num_edges", [20, 60, 400])
def test_description_is_that_in_memory(tmp_path, directed, num_edges):
    graph, store = graph_and_store(tmp_path, num_edges=num_edges, directed=directed)
    expected = describe(graph)
    found = describe_store(store)
    assert {**found, "memory_bytes": 0} == {**expected, "memory_bytes": 0}


@pytest.mark.parametrize("weighted", [False, True])
def test_a_sample_is_an_induced_subgraph(tmp_path, weighted, notes):
    graph, store = graph_and_store(tmp_path, num_nodes=300, num_edges=900, weighted=weighted)
    part = sampled_graph(store, 120)
    assert part.num_nodes == 120 and "120 of 300" in notes[0]
    nodes = [np.flatnonzero((graph.features == row).all(axis=1))[0] for row in part.features]
    assert len(set(nodes)) == 120
    np.testing.assert_allclose(part.adjacency.toarray(), graph.adjacency.toarray()[np.ix_(nodes, nodes)])
    assert sampled_graph(store, 300).digest == graph.digest


def test_a_sample_goes_on_where_components_end(tmp_path, notes):
    _, store = graph_and_store(tmp_path, num_nodes=900, num_edges=30)
    assert sampled_graph(store, 600).num_nodes == 600


def test_inspect_on_disk(capsys, tmp_path):
    _, store = graph_and_store(tmp_path)
    disk, memory = (answer(capsys, "inspect", store.folder, *more) for more in (ON_DISK, ()))
    assert {**disk, "memory_bytes": 0} == {**memory, "memory_bytes": 0}
    assert "nodes" in output(capsys, "inspect", store.folder, *ON_DISK)[0]
    labels = write_csv(tmp_path / "labels.csv", "id,label", [[node, node % 2] for node in range(100)])
    assert "classes" in answer(capsys, "inspect", store.folder, "--labels", labels)
    assert "--labels" in refusal(capsys, "inspect", store.folder, *ON_DISK, "--labels", labels)
