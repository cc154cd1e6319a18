"""Small random graphs and generators that most tests start from."""

import csv
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import sparse

from spgcl import Graph, InputError

CPU = torch.device("cpu")


def make_graph(
    num_nodes=40,
    num_features=6,
    *,
    num_edges=90,
    directed=False,
    weighted=False,
    sparse_features=False,
    uneven=False,
    seed=0,
):
    """A random graph whose last node is isolated; `uneven` gives rows of features different lengths."""
    generator = np.random.default_rng(seed)
    ends = generator.integers(0, num_nodes - 1, (2, num_edges))
    features = generator.normal(size=(num_nodes, num_features)).astype(np.float32)
    if uneven:
        features *= generator.uniform(0.2, 5, (num_nodes, 1)).astype(np.float32)
    if sparse_features:
        # Below the density from which features are kept dense.
        features = sparse.csr_array(features * (generator.random(features.shape) < 0.07))
    weights = generator.uniform(0.5, 2, num_edges) if weighted else None
    return Graph.from_edges(*ends, features, weights=weights, directed=directed)


def write_csv(path, header, rows):
    """A table with a header such as "id,label"; without one if it is empty."""
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([*([header.split(",")] if header else []), *rows])
    return path


def seeded(seed=7):
    return torch.Generator().manual_seed(seed)


def arcs_of(graph):
    """The value of every stored entry of the adjacency by its pair of rows; an undirected edge has two."""
    matrix = graph.adjacency.tocoo()
    ends = zip(*(side.tolist() for side in matrix.coords), strict=True)
    return dict(zip(ends, matrix.data.tolist(), strict=True))


@contextmanager
def refusing(*parts):
    """The block raises an `InputError` of one line that holds all parts."""
    with pytest.raises(InputError) as error:
        yield
    line = str(error.value)
    assert "\n" not in line
    assert [part for part in map(str, parts) if part not in line] == [], line


def labelled_ring(folder):
    """Write a graph of 30 nodes and its labels; the arguments of `fit` that read them."""
    write_csv(folder / "g.csv", "source,target", [(node, (3 * node + 1) % 30) for node in range(30)])
    write_csv(folder / "labels.csv", "node,label", [(node, node % 2) for node in range(30)])
    return [folder / "g.csv", "--labels", folder / "labels.csv", "--structural", "degree"]
