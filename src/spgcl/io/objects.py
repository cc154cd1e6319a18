"""Graphs in memory: SciPy matrices, edge arrays, tensors and PyTorch Geometric data.

Classes of other libraries are recognised by name, so that nothing is imported to inspect an object.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spgcl.errors import InputError
from spgcl.graph.checks import checked_end_points
from spgcl.io.arrow import to_arrow
from spgcl.io.draft import Draft, from_id_pairs

if TYPE_CHECKING:
    from pyarrow import Array

WEIGHTS = ("edge_weight", "edge_attr")
STRUCTURE = ("edge_index", "adj_t", "adj", *WEIGHTS, "edge_type", "x", "num_nodes")
# What to do with objects of PyTorch Geometric that are not one graph.
_NOT_ONE_GRAPH = {
    "HeteroData": "turn it into one graph: data = data.to_homogeneous(); del data.edge_type",
    "Batch": "pass one of its graphs: batch[0]",
    "TemporalData": "build a Data of the edges in one time span",
}


def comes_from(value: Any, library: str, name: str = "") -> bool:
    """Whether an object's class, or one it derives from, is `name` (default: any) of `library`."""
    return any(
        kind.__module__.split(".")[0] == library and name in ("", kind.__name__)
        for kind in type(value).__mro__
    )


def is_frame(value: Any) -> bool:
    """Whether an object hands out a table by the Arrow PyCapsule interface: a data frame, a relation."""
    return hasattr(value, "__arrow_c_stream__")


def as_matrix(value: Any) -> Any:
    """A tensor as an array or SciPy matrix; anything else unchanged."""
    if not comes_from(value, "torch", "Tensor"):
        return value
    import torch

    value = value.detach().cpu()
    if value.dtype is torch.bfloat16:
        # NumPy has no bfloat16.
        value = value.float()
    if value.layout is torch.strided:
        return value.numpy()
    if value.dim() != 2 or value.layout not in (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc):
        raise InputError(
            f"a {value.dim()}-dimensional {value.layout} tensor is no matrix; use sparse_coo or sparse_csr"
        )
    entries = value.to_sparse_coo().coalesce()
    rows, columns = entries.indices().numpy()
    return sparse.coo_array((entries.values().numpy(), (rows, columns)), shape=tuple(value.shape)).tocsr()


def from_adjacency(adjacency: Any, *, transposed: bool = False) -> Draft:
    """A SciPy adjacency matrix: entry (i, j) is the edge from i to j, its value the weight.

    A matrix of ones is an unweighted graph.
    """
    shape = tuple(adjacency.shape)
    if len(shape) != 2 or shape[0] != shape[1]:
        raise InputError(f"an adjacency matrix is square, this one has shape {shape}")
    if adjacency.dtype.kind not in "biuf":
        raise InputError(f"an adjacency matrix holds numbers, not {adjacency.dtype}")
    matrix = sparse.coo_array(adjacency)
    rows, columns = matrix.coords
    present, notes = matrix.data != 0, []
    if not present.all():
        notes.append(f"{np.count_nonzero(~present):,} stored zeros of the adjacency matrix are no edges")
        rows, columns = rows[present], columns[present]
    values = matrix.data[present]
    weights = None if (values == 1).all() else values
    if weights is not None:
        notes.append("values of the adjacency matrix used as edge weights")
    sources, targets = (columns, rows) if transposed else (rows, columns)
    return Draft(sources, targets, np.arange(shape[0]), weights=weights, notes=tuple(notes))


def from_edge_array(edges: Any) -> Draft:
    """An array of node pairs, shape (E, 2) or (2, E), of integer or text ids.

    Of shape (2, 2), an array has one edge per row, and a tensor (as PyTorch Geometric's `edge_index`) one per
    column.
    """
    by_column = comes_from(edges, "torch", "Tensor")
    try:
        pairs = np.asarray(as_matrix(edges))
    except ValueError:
        raise InputError("edges must be pairs of node ids; some entries are longer or shorter") from None
    if pairs.ndim != 2 or 2 not in pairs.shape:
        raise InputError(
            f"edges need shape (E, 2) or (2, E), not {pairs.shape}; pass an adjacency matrix as scipy.sparse"
        )
    notes: tuple[str, ...] = ()
    if pairs.shape == (2, 2):
        notes = (f"edges of shape (2, 2) read as one edge per {'column' if by_column else 'row'}",)
    if pairs.shape[1] != 2 or (pairs.shape == (2, 2) and by_column):
        pairs = pairs.T
    return from_id_pairs(*(_ids(end) for end in pairs.T), notes=notes)


def _ids(ends: NDArray[Any]) -> "Array":
    if ends.dtype.kind in "iu":
        if len(ends) and (ends > np.iinfo(np.int64).max).any():
            raise InputError(f"edges refer to node {ends.max()}, which exceeds 64-bit integers; use text ids")
        return to_arrow(ends.astype(np.int64, copy=False))
    if ends.dtype.kind == "U" or (ends.dtype.kind == "O" and all(isinstance(end, str) for end in ends)):
        return to_arrow(ends)
    raise InputError(f"edges name nodes by integers or text, not by {ends.dtype}; convert the array")


def from_pyg(data: Any, *, weighted: bool = True) -> Draft:
    """A PyTorch Geometric `Data`: x, edge_index or adj_t, and edge_weight or edge_attr of one column."""
    kinds = [name for name in _NOT_ONE_GRAPH if comes_from(data, "torch_geometric", name)]
    if kinds or not comes_from(data, "torch_geometric", "Data"):
        fix = _NOT_ONE_GRAPH[kinds[0]] if kinds else "pass a Data, e.g. dataset[0]"
        raise InputError(f"a {type(data).__name__} of PyTorch Geometric is not one graph; {fix}")
    return from_attributes(data.to_dict(), weighted=weighted)


def from_attributes(attributes: Mapping[str, Any], *, weighted: bool = True) -> Draft:
    """The attributes of a `Data`, by name; labels and masks are ignored."""
    stored = {name: attributes[name] for name in STRUCTURE if attributes.get(name) is not None}
    ignored = [] if weighted else [name for name in WEIGHTS if stored.pop(name, None) is not None]
    if "edge_type" in stored:
        raise InputError("the data has several kinds of edges, but a graph has one; delete edge_type")
    edges = _stored_edges(stored)
    num_nodes = _count_nodes(stored, edges)
    sources, targets = checked_end_points(edges.sources, edges.targets, num_nodes)
    notes = [*edges.notes, *(f"{name} ignored" for name in ignored)]
    weights = edges.weights if weighted else None
    if weights is None:
        weights = _stored_weights(stored, len(edges.sources), notes)
    features = as_matrix(stored["x"]) if "x" in stored else None
    return Draft(
        sources, targets, np.arange(num_nodes), features=features, weights=weights, notes=tuple(notes)
    )


def _stored_edges(stored: dict[str, Any]) -> Draft:
    if "edge_index" in stored:
        sources, targets = edge_ends(stored["edge_index"], "edge_index", axis=0)
        return Draft(sources, targets, np.arange(0))
    for name in ("adj_t", "adj"):
        if name in stored:
            matrix = as_matrix(stored[name])
            if not sparse.issparse(matrix):
                raise InputError(
                    f"{name} is a {type(matrix).__name__}; give edge_index, or a torch sparse tensor"
                )
            return from_adjacency(matrix, transposed=name == "adj_t")
    raise InputError("the data has no edge_index; a graph needs edges")


def edge_ends(edges: Any, name: str, *, axis: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Sources and targets of an array of integers, which has both along `axis`."""
    ends = np.asarray(as_matrix(edges))
    if ends.ndim != 2 or ends.shape[axis] != 2 or ends.dtype.kind not in "iu":
        shape = ("(2, E)", "(E, 2)")[axis]
        raise InputError(f"{name} needs integers of shape {shape}, not {ends.dtype} of shape {ends.shape}")
    return ends.take(0, axis), ends.take(1, axis)


def _count_nodes(stored: dict[str, Any], edges: Draft) -> int:
    if "x" in stored:
        return int(stored["x"].shape[0])
    if "num_nodes" in stored:
        return int(stored["num_nodes"])
    return 1 + int(max(len(edges.node_ids) - 1, edges.sources.max(initial=-1), edges.targets.max(initial=-1)))


def _stored_weights(stored: dict[str, Any], num_edges: int, notes: list[str]) -> NDArray[Any] | None:
    name = next((name for name in WEIGHTS if name in stored), None)
    if name is None:
        return None
    values = np.asarray(as_matrix(stored[name]))
    if values.shape not in ((num_edges,), (num_edges, 1)):
        raise InputError(
            f"{name} has shape {values.shape} for {num_edges} edges, but an edge has one weight; "
            "set data.edge_weight to one column and delete edge_attr, or ignore it (--weight none)"
        )
    notes.append(f"{name} used as edge weights")
    if name == "edge_weight" and "edge_attr" in stored:
        notes.append("edge_attr ignored, as there is edge_weight")
    return values.reshape(-1)
