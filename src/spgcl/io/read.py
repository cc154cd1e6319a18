"""The front door: whatever a user has becomes a Graph, or one line says why not."""

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from spgcl.errors import InputError, NoFeaturesError, unknown
from spgcl.graph import Graph
from spgcl.graph.structural import Structural, with_structural
from spgcl.io.draft import NO_WEIGHTS, Draft, first_edge_of, is_integer, positions_of, refuse_columns
from spgcl.io.features import NodeFeatures, read_features
from spgcl.io.objects import as_matrix, comes_from, from_adjacency, from_edge_array, from_pyg
from spgcl.io.opening import suffix_of

EDGE_LISTS = (".csv", ".tsv", ".txt", ".edges", ".parquet")
SAVED_DATA = (".pt", ".pth")
_NO_FEATURE_SAYS = "all features are zero: methods that read them have nothing to learn from"


def read_graph(
    source: Any,
    features: Any = None,
    *,
    structural: Structural | None = None,
    directed: bool = False,
    source_column: str | None = None,
    target_column: str | None = None,
    weight_column: str | None = None,
    id_column: str | None = None,
    feature_attributes: Sequence[str] | None = None,
) -> Graph:
    """Read a graph from what a user has.

    Args:
        source: A Graph or Dataset; a PyTorch Geometric Data; a NetworkX graph; a SciPy adjacency matrix, or
            (adjacency, features); an array of edges, shape (E, 2) or (2, E); a path: edge list (.csv, .tsv,
            .txt, .edges, .parquet), .graphml, .pt/.pth of a Data, .npz with `node_features` and `edges`.
        features: A path (.csv, .tsv, .txt, .parquet with ids; .npy, .npz by position), array, SciPy matrix or
            tensor. Its nodes are the graph's: those without edges stay, edges to others are an error.
        structural: Features to make from the structure where there are none.
        directed: Keep direction; otherwise edges go both ways.
        source_column: Column of an edge table, else its first.
        target_column: Column of an edge table, else its second.
        weight_column: Column of an edge table or edge attribute of a network, else the one called `weight`;
            "none" for a graph without weights, whatever the source holds.
        id_column: Column of node ids in a table of features, else its first.
        feature_attributes: Node attributes of a network that make its features.

    Raises:
        InputError: The input cannot be read as one graph; the message says where and what to do.
    """
    if structural not in (None, "degree", "spectral"):
        raise unknown("structural features", str(structural), ["degree", "spectral"])
    if isinstance(source, tuple) and len(source) == 2 and _is_matrix(source[0]):
        if features is not None:
            raise InputError("features are given twice: in the pair and beside it; leave one out")
        source, features = source
    columns = {"source_column": source_column, "target_column": target_column, "weight_column": weight_column}
    known = source if isinstance(source, Graph) else getattr(source, "graph", None)
    if isinstance(known, Graph):
        refuse_columns("a graph that is already read", **columns, feature_attributes=feature_attributes)
        return _again(known, features, structural=structural, directed=directed, id_column=id_column)
    draft = _draft(source, columns, feature_attributes, directed=directed)
    given = None if features is None else read_features(features, id_column=id_column)
    return _assemble(draft, given, structural=structural, directed=directed)


def _is_matrix(value: Any) -> bool:
    return sparse.issparse(value) or (hasattr(value, "shape") and len(value.shape) == 2)


def _again(
    graph: Graph, features: Any, *, structural: Structural | None, directed: bool, id_column: str | None
) -> Graph:
    if directed and not graph.directed:
        raise InputError(
            "this graph is already undirected; leave directed out or read it again from its source"
        )
    if structural is not None:
        raise InputError(f"this graph has features already; leave out structural {structural!r}")
    if features is None:
        return graph
    sources = np.repeat(np.arange(graph.num_nodes), graph.degrees)
    kept = tuple(note for note in graph.notes if note != _NO_FEATURE_SAYS)
    draft = Draft(sources, graph.columns, graph.node_ids, weights=graph.weights, notes=kept)
    given = read_features(features, id_column=id_column)
    return _assemble(draft, given, structural=None, directed=graph.directed)


def _draft(
    source: Any, columns: dict[str, str | None], attributes: Sequence[str] | None, *, directed: bool
) -> Draft:
    if isinstance(source, str | PathLike):
        return _draft_file(Path(source), columns, attributes, directed=directed)
    if comes_from(source, "networkx"):
        from spgcl.io.networks import from_networkx

        weight = columns.pop("weight_column")
        refuse_columns("a NetworkX graph", **columns)
        return from_networkx(source, attributes=attributes, weight=weight, directed=directed)
    weighted = _take_weighted(columns)
    refuse_columns(f"a {type(source).__name__}", **columns, feature_attributes=attributes)
    if comes_from(source, "torch_geometric"):
        return from_pyg(source, weighted=weighted)
    matrix = as_matrix(source)
    if sparse.issparse(matrix):
        return from_adjacency(matrix if weighted else matrix != 0)
    if isinstance(source, np.ndarray | list | tuple) or comes_from(source, "torch", "Tensor"):
        return from_edge_array(source)
    raise InputError(
        f"cannot read a graph from a {type(source).__name__}; pass a path, a PyTorch Geometric Data, "
        f"a NetworkX graph, a SciPy matrix or an array of edges"
    )


def _take_weighted(columns: dict[str, str | None]) -> bool:
    """Whether weights are wanted, for sources in which no column is named."""
    if columns["weight_column"] != NO_WEIGHTS:
        return True
    columns["weight_column"] = None
    return False


def _draft_file(
    path: Path, columns: dict[str, str | None], attributes: Sequence[str] | None, *, directed: bool
) -> Draft:
    suffix = suffix_of(path)
    if suffix == ".graphml":
        from spgcl.io.networks import from_networkx, read_graphml

        weight = columns.pop("weight_column")
        refuse_columns(str(path), **columns)
        try:
            draft = from_networkx(read_graphml(path), attributes=attributes, weight=weight, directed=directed)
        except InputError as error:
            raise _at(str(path), error) from None
        return replace(draft, origin=str(path))
    refuse_columns(str(path), feature_attributes=attributes)
    if suffix in EDGE_LISTS:
        from spgcl.io.edges import EdgeColumns, read_edge_list

        return read_edge_list(path, EdgeColumns(*columns.values()))
    weighted = _take_weighted(columns)
    refuse_columns(str(path), **columns)
    if suffix in SAVED_DATA or suffix == ".npz":
        from spgcl.io.saved import read_heterophilous, read_saved_data

        return read_heterophilous(path) if suffix == ".npz" else read_saved_data(path, weighted=weighted)
    endings = ", ".join((*EDGE_LISTS, ".graphml", *SAVED_DATA, ".npz"))
    by_name = "" if suffix else f"; a benchmark is loaded by name: spgcl.load({str(path)!r})"
    raise InputError(
        f"{path}: cannot tell a graph file from the ending {suffix!r}; use one of {endings}{by_name}"
    )


def _at(origin: str, error: InputError) -> InputError:
    return error if not origin or origin in str(error) else type(error)(f"{origin}: {error}")


def _assemble(
    draft: Draft, given: NodeFeatures | None, *, structural: Structural | None, directed: bool
) -> Graph:
    """Join edges and features and let the Graph validate both."""
    if structural is not None and (given is not None or draft.features is not None):
        raise _at(
            draft.origin, InputError(f"there are features already; leave out structural {structural!r}")
        )
    if given is not None:
        draft = _joined(draft, given)
    if draft.features is None and structural is None:
        raise _at(draft.origin, _no_features(draft))
    features = (
        np.zeros((len(draft.node_ids), 1), dtype=np.float32) if draft.features is None else draft.features
    )
    try:
        graph = Graph.from_edges(
            draft.sources,
            draft.targets,
            features,
            weights=draft.weights,
            node_ids=draft.node_ids,
            directed=directed,
            notes=draft.notes,
            feature_names=draft.feature_names,
        )
    except InputError as error:
        raise _at(draft.origin, error) from None
    if structural is None:
        return graph if _any_feature(graph) else replace(graph, notes=(*graph.notes, _NO_FEATURE_SAYS))
    made = with_structural(graph, structural)
    note = f"{made.num_features} structural features ({structural}) made, as there are none"
    return replace(made, notes=(*graph.notes, note))


def _any_feature(graph: Graph) -> bool:
    numbers = graph.features.data if sparse.issparse(graph.features) else graph.features
    return bool(np.any(numbers))


def _no_features(draft: Draft) -> InputError:
    listed = ",".join(" ".join(name.split()) for name in draft.attributes[:5])
    more = ",..." if len(draft.attributes) > 5 else ""
    from_nodes = f" take them from node attributes (--attributes {listed}{more})," if listed else ""
    return NoFeaturesError(
        f"no features; give them (--features FILE),{from_nodes} or make some from the structure "
        "(--structural degree|spectral)"
    )


def _joined(draft: Draft, given: NodeFeatures) -> Draft:
    """The draft over the nodes of the features."""
    notes = (*draft.notes, *given.notes)
    if draft.features is not None:
        notes = (*notes, "the graph's own features left aside for those given")
    num_rows = given.matrix.shape[0]
    if given.ids is None and draft.complete:
        if num_rows != len(draft.node_ids):
            raise InputError(
                f"{given.origin}: {num_rows} feature rows, but the graph has {len(draft.node_ids)} nodes"
            )
        return replace(draft, features=given.matrix, feature_names=given.names, notes=notes)
    ids = np.arange(num_rows) if given.ids is None else given.ids
    if given.ids is None and not is_integer(draft.node_ids):
        raise InputError(
            f"edges name nodes by text ({draft.node_ids[0]!r}), but the rows of {given.origin} are nodes "
            f"0 to {num_rows - 1}; give features as a table with an id column"
        )
    places = positions_of(draft.node_ids, ids)
    if (places < 0).any():
        raise _unknown_node(draft, given, ids, int(np.argmin(places)))
    return replace(
        draft,
        sources=places[draft.sources],
        targets=places[draft.targets],
        node_ids=ids,
        features=given.matrix,
        feature_names=given.names,
        notes=notes,
    )


def _unknown_node(draft: Draft, given: NodeFeatures, ids: Any, position: int) -> InputError:
    node = draft.node_ids[position : position + 1].tolist()[0]
    where = first_edge_of(draft, position)
    start = f"{where}: node {node!r}" if where else f"node {node!r}"
    if given.ids is None:
        known = f"which describes {len(ids)} nodes (0 to {len(ids) - 1})"
        return InputError(f"{start} is not in {given.origin}, {known}; add its row or drop the edge")
    example = f"its ids look like {ids[:1].tolist()[0]!r}"
    return InputError(f"{start} is not in {given.origin} ({example}); add its row or drop the edge")
