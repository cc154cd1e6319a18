"""What others offer for such graphs, within 5 GiB: PyTorch Geometric on the whole graph, NetworkX walks.

python benchmarks/store_rivals.py pyg|networkx FOLDER
"""

import json
import random
import resource
import sys
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pyarrow import parquet

MOST_BYTES = 5 * 2**30
EPOCHS, WALKS, LENGTH = 10, 10, 20


def read(folder: Path) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Edges, shape (2, edges), and features."""
    table = parquet.read_table(folder / "edges.parquet")
    ends = np.stack([table[name].to_numpy() for name in ("source", "target")])
    return ends, np.load(folder / "features.npy")


def pyg(folder: Path) -> dict[str, float]:
    """Deep Graph Infomax on the whole graph, width 64: seconds of reading and per epoch."""
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
    for _ in range(EPOCHS):
        optimiser.zero_grad()
        model.loss(*model(features, edges)).backward()
        optimiser.step()
    return {"read": ready - started, "epoch": (time.perf_counter() - ready) / EPOCHS}


def networkx(folder: Path) -> dict[str, float]:
    """Random walks on a NetworkX graph, as scripts for node2vec begin; without learning from them."""
    import networkx as nx

    started = time.perf_counter()
    graph = nx.Graph()
    graph.add_edges_from(read(folder)[0].T.tolist())
    ready = time.perf_counter()
    chosen = random.Random(0)
    neighbours = {node: list(graph[node]) for node in graph}
    for _ in range(WALKS):
        for node in graph:
            current = node
            for _ in range(LENGTH):
                current = chosen.choice(neighbours[current])
    return {"read": ready - started, "walks": time.perf_counter() - ready}


def main() -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))
    work = {"pyg": pyg, "networkx": networkx}[sys.argv[1]]
    print(json.dumps({name: round(seconds, 2) for name, seconds in work(Path(sys.argv[2])).items()}))


if __name__ == "__main__":
    main()
