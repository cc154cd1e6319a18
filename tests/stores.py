"""Small stores, and the graphs they hold."""

import numpy as np
from graphs import make_graph, write_csv

from spgcl import Graph
from spgcl.scale.ingest import LEAST_MEMORY, Sources, ingest


def store_of(folder, graph, *, block_rows=16, half=False):
    """A store of a graph, in several blocks."""
    sources = np.repeat(np.arange(graph.num_nodes), np.diff(graph.rows))
    columns = [sources, graph.columns, *([] if graph.weights is None else [graph.weights.astype(float)])]
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    edges = write_csv(folder / "edges.csv", "a,b,weight"[: 3 if graph.weights is None else None], rows)
    features = folder / "features.npy"
    np.save(features, graph.features)
    asked = Sources([str(edges)], str(features), directed=graph.directed, half=half)
    return ingest(asked, folder / "store", memory=LEAST_MEMORY, block_rows=block_rows, overwrite=True)


def graph_and_store(folder, *, half=False, **shape):
    graph: Graph = make_graph(**{"num_nodes": 100, "num_edges": 400, **shape})
    store = store_of(folder, graph, half=half)
    return store.load(), store


def results_of(run):
    """The files of a run, without the record of how it came about."""
    found = {str(path.relative_to(run)): path.read_bytes() for path in run.rglob("*") if path.is_file()}
    assert "model.safetensors" in found and found.pop("run.json")
    return found
