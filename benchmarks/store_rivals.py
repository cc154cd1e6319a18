"""What others offer for such graphs, within 5 GiB: PyTorch Geometric on the whole graph, random walks.

python benchmarks/store_rivals.py pyg|networkx|pecanpy FOLDER
"""

import importlib
import json
import random
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

MOST_BYTES = 5 * 2**30
EPOCHS, WALKS, LENGTH = 10, 10, 20
# What was done, and its seconds.
Phases = Iterator[tuple[str, float]]


def read(folder: Path) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Edges, shape (2, edges), and features."""
    from pyarrow import parquet

    table = parquet.read_table(folder / "edges.parquet")
    ends = np.stack([table[name].to_numpy() for name in ("source", "target")])
    return ends, np.load(folder / "features.npy")


def pyg(folder: Path) -> Phases:
    """Deep Graph Infomax on the whole graph, width 64."""
    import torch
    from torch_geometric.nn import DeepGraphInfomax, GCNConv
    from torch_geometric.utils import to_undirected

    torch.set_num_threads(1)
    started = time.perf_counter()
    ends, values = read(folder)
    edges, features = to_undirected(torch.from_numpy(ends)), torch.from_numpy(values)
    model = DeepGraphInfomax(
        64,
        encoder=GCNConv(features.shape[1], 64),
        summary=lambda vectors, *_: vectors.mean(dim=0).sigmoid(),
        corruption=lambda rows, edges: (rows[torch.randperm(len(rows))], edges),
    )
    optimiser = torch.optim.Adam(model.parameters())
    ready = time.perf_counter()
    yield "read", ready - started
    for _ in range(EPOCHS):
        optimiser.zero_grad()
        model.loss(*model(features, edges)).backward()
        optimiser.step()
    yield "epoch", (time.perf_counter() - ready) / EPOCHS


def networkx(folder: Path) -> Phases:
    """Random walks on a NetworkX graph, as scripts for node2vec begin; without learning from them."""
    import networkx as nx

    started = time.perf_counter()
    graph = nx.Graph()
    graph.add_edges_from(read(folder)[0].T.tolist())
    ready = time.perf_counter()
    yield "read", ready - started
    chosen = random.Random(0)
    neighbours = {node: list(graph[node]) for node in graph}
    for _ in range(WALKS):
        for node in graph:
            current = node
            for _ in range(LENGTH):
                current = chosen.choice(neighbours[current])
    yield "walks", time.perf_counter() - ready


def pecanpy(folder: Path) -> Phases:
    """Node2vec by PecanPy: walks, compiled when they begin, and an epoch of learning width 64 from them."""
    walker = importlib.import_module("pecanpy.pecanpy")
    importlib.import_module("numba").set_num_threads(1)
    started = time.perf_counter()
    graph = walker.FirstOrderUnweighted(1, 1, workers=1, random_state=0)
    graph.read_edg(str(folder / "edges.edg"), weighted=False, directed=False)
    ready = time.perf_counter()
    yield "read", ready - started
    walks = graph.simulate_walks(WALKS, LENGTH)
    walked = time.perf_counter()
    yield "walks", walked - ready
    word2vec = importlib.import_module("gensim.models").Word2Vec
    word2vec(walks, vector_size=64, window=10, min_count=0, sg=1, workers=1, epochs=1)
    yield "epoch", time.perf_counter() - walked


def main() -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))
    work = {"pyg": pyg, "networkx": networkx, "pecanpy": pecanpy}[sys.argv[1]]
    for name, seconds in work(Path(sys.argv[2])):
        print(json.dumps({name: round(seconds, 2)}), flush=True)


if __name__ == "__main__":
    main()
