"""Statistics of a graph: size, degrees, and how often its edges join equal labels."""

from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from spgcl.evaluation.checks import checked_labels
from spgcl.evaluation.transformed import transformed_homophily
from spgcl.graph import Graph


def edge_homophily(graph: Graph, labels: Any) -> float:
    """Fraction of the edges that join two nodes of one class; edges at an unlabelled node are left out."""
    same, known = _agreement(graph, checked_labels(labels, graph.num_nodes))
    return int(np.count_nonzero(same)) / max(int(np.count_nonzero(known)), 1)


def node_homophily(graph: Graph, labels: Any) -> float:
    """Mean over nodes of the fraction of their (out-)neighbours that have the node's own class.

    Nodes without a labelled neighbour are left out of the mean.
    """
    same, known = _agreement(graph, checked_labels(labels, graph.num_nodes))
    equal, total = _sum_by_row(graph, same), _sum_by_row(graph, known)
    return float((equal[total > 0] / total[total > 0]).mean()) if total.any() else 0.0


def table_figures(graph: Graph, labels: NDArray[np.int64]) -> dict[str, float]:
    """The figures in the paper's table of data sets, counting every edge once."""
    return {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "classes": int(labels.max()) + 1,
        "features": graph.num_features,
        "edge_homophily": edge_homophily(graph, labels),
        "node_homophily": node_homophily(graph, labels),
        "average_degree": 2 * graph.num_edges / graph.num_nodes,
    }


def class_mixing(graph: Graph, labels: Any) -> NDArray[np.float64]:
    """Where the edges of each class lead, shape (classes, classes).

    Entry (c, d) is the fraction of class c's edge ends whose other end has class d: rows sum to one, or are
    zero for a class without edges. The diagonal is the homophily of each class.
    """
    values = checked_labels(labels, graph.num_nodes)
    _, known = _agreement(graph, values)
    num_classes = int(values.max()) + 1
    ends = np.repeat(values, graph.degrees)[known] * num_classes + values[graph.columns[known]]
    counts = np.bincount(ends, minlength=num_classes**2).reshape(num_classes, num_classes)
    return np.asarray(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1), dtype=np.float64)


def _agreement(graph: Graph, labels: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """For every stored edge, whether its ends have the same class, and whether both classes are known."""
    here, there = np.repeat(labels, graph.degrees), labels[graph.columns]
    known = (here >= 0) & (there >= 0)
    return (here == there) & known, known


def _sum_by_row(graph: Graph, flags: NDArray[np.bool_]) -> NDArray[np.int64]:
    running = np.concatenate([[0], np.cumsum(flags, dtype=np.int64)])
    return np.asarray(np.diff(running[graph.rows]))


def describe(graph: Graph, labels: Any = None) -> dict[str, Any]:
    """A graph as plain values: size, degrees, memory, and with labels classes and homophilies."""
    matrix, degrees = graph.adjacency, graph.degrees
    features: Any = graph.features
    touched = (
        degrees if not graph.directed else degrees + np.bincount(graph.columns, minlength=graph.num_nodes)
    )
    filled = features.nnz if sparse.issparse(features) else np.count_nonzero(features)
    record: dict[str, Any] = {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "features": graph.num_features,
        "feature_density": float(filled / (graph.num_nodes * graph.num_features)),
        "directed": graph.directed,
        "weighted": graph.weights is not None,
        "degree": degree_figures(degrees),
        "isolated_nodes": int(np.count_nonzero(touched == 0)),
        "connected_components": int(
            csgraph.connected_components(matrix, directed=graph.directed, connection="weak")[0]
        ),
        "memory_bytes": _memory(graph),
    }
    return record if labels is None else record | _describe_labels(graph, labels)


def degree_figures(degrees: NDArray[Any]) -> dict[str, float]:
    """Least, median, mean and largest degree."""
    return {
        "min": int(degrees.min()),
        "median": float(np.median(degrees)),
        "mean": float(degrees.mean()),
        "max": int(degrees.max()),
    }


def _describe_labels(graph: Graph, labels: Any) -> dict[str, Any]:
    values = checked_labels(labels, graph.num_nodes)
    counts = np.bincount(values[values >= 0])
    positives = min(5, graph.num_nodes - 1)
    return {
        "classes": len(counts),
        "class_counts": counts.tolist(),
        "unlabelled_nodes": int(np.count_nonzero(values < 0)),
        "edge_homophily": edge_homophily(graph, values),
        "node_homophily": node_homophily(graph, values),
        "transformed": asdict(transformed_homophily(graph, values, positives=positives)),
    }


def _memory(graph: Graph) -> int:
    """Bytes of the arrays that a graph holds."""
    features: Any = graph.features
    parts = [graph.rows, graph.columns, graph.node_ids]
    parts += [features.indptr, features.indices, features.data] if sparse.issparse(features) else [features]
    if graph.weights is not None:
        parts.append(graph.weights)
    return sum(part.nbytes for part in parts)
