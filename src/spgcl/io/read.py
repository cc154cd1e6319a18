"""The entry point: files and objects of many kinds become a Graph, or an error of one line."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, get_args

import numpy as np
from scipy import sparse

from spgcl.errors import InputError, NoFeaturesError, note, shown, unknown
from spgcl.graph import Graph
from spgcl.graph.structural import Structural, with_structural
from spgcl.io.draft import EDGE_OPTIONS, NO_WEIGHTS, Draft, Options, is_integer, positions_of
from spgcl.io.features import NodeFeatures, holds_matrix, read_features
from spgcl.io.objects import as_matrix, comes_from, from_adjacency, from_edge_array, from_pyg, is_frame
from spgcl.io.opening import naming, read_bytes, suffix_of

EDGE_LISTS = (".csv", ".tsv", ".txt", ".edges", ".edgelist", ".parquet", ".feather")
SAVED_DATA = (".pt", ".pth")
NETWORKS = (".graphml", ".gml", ".gexf", ".json")
MATRICES = (".mtx", ".mat")
ALL_ZERO = "all features are zero: methods that read them have nothing to learn from"


def read_graph(
    source: Any,
    features: Any = None,
    *,
    structural: Structural | None = None,
    directed: bool = False,
    source_column: str | None = None,
    target_column: str | None = None,
    weight_column: str | None = None,
    bipartite: bool = False,
    id_column: str | None = None,
    feature_attributes: Sequence[str] | None = None,
    feature_columns: Sequence[str] | None = None,
    encoding: Mapping[str, Any] | None = None,
) -> Graph:
    """Read a graph from a file or an object.

    Args:
        source: A Graph or Dataset; a table of edges (pandas, polars, PyArrow, DuckDB and whatever hands out
            Arrow data); a PyTorch Geometric Data; a NetworkX graph; a SciPy adjacency matrix, or (adjacency,
            features); an array of edges, shape (E, 2) or (2, E); a path: edge list (.csv, .tsv, .txt, .edges,
            .edgelist, .parquet, .feather), network (.graphml, .gml, .gexf, node-link .json), matrix (.mtx,
            .mat, SciPy's .npz), .pt/.pth of a Data, .npz with `node_features` and `edges`.
        features: A path (.csv, .tsv, .txt, .parquet with ids; .npy, .npz by position), array, SciPy matrix or
            tensor. Its nodes are the graph's: those without edges stay, edges to others are an error.
        structural: Features to compute if there are none: "degree", "spectral", "relations" (of triples).
        directed: Keep direction; otherwise edges go both ways.
        source_column: Column of an edge table, else its first.
        target_column: Column of an edge table, else its second.
        weight_column: Column or edge attribute of weights, else the one called `weight`; "none" ignores all.
        bipartite: Whether both columns of an edge table have ids of their own, such as user:5 and item:5.
        id_column: Column of node ids in a table of features, else the one called `id`, else its first.
        feature_attributes: Node attributes of a network to use as features.
        feature_columns: Columns of a table of features to use, else all but the ids.
        encoding: That of another graph: what was learned from its table is applied to this one.

    Raises:
        InputError: It cannot be read as one graph; the message tells where, and what to do.
    """
    if structural not in (None, *get_args(Structural)):
        raise unknown("structural features", str(structural), get_args(Structural))
    source, features = _split_pair(source, features)
    flags = (bipartite or None, structural == "relations" or None)
    options = Options(source_column, target_column, weight_column, feature_attributes, *flags)
    known = source if isinstance(source, Graph) else getattr(source, "graph", None)
    if isinstance(known, Graph):
        options.refuse_all_but(kind="a graph that is already read")
        draft, directed = _draft_graph(known, structural, directed=directed), known.directed
        if features is None:
            return known
    else:
        draft = _draft(source, options, directed=directed)
    if feature_columns and features is None:
        raise InputError("--columns are those of a table of features; give one (--features FILE)")
    chosen: dict[str, Any] = {"id_column": id_column, "columns": feature_columns, "encoding": encoding}
    given = None if features is None else read_features(features, **chosen)
    if draft.relations and given is None:
        given, structural = _relation_counts(draft, encoding), None
    with naming(draft.origin):
        return _assemble(draft, given, structural=structural, directed=directed)


def _relation_counts(draft: Draft, encoding: Mapping[str, Any] | None) -> NodeFeatures:
    # Late, as it reads tables.
    from spgcl.io.relations import count_relations

    assert draft.relations
    return count_relations(draft, draft.relations, encoding)


def _split_pair(source: Any, features: Any) -> tuple[Any, Any]:
    """A graph and its features, which may be given as a pair."""
    if (
        not isinstance(source, tuple)
        or len(source) != 2
        or not (_is_matrix(source[0]) or is_frame(source[0]))
    ):
        return source, features
    if features is not None:
        raise InputError("features are given twice, in the pair and separately; leave one out")
    return source[0], source[1]


def _is_matrix(value: Any) -> bool:
    return sparse.issparse(value) or (hasattr(value, "shape") and len(value.shape) == 2)


def _draft_graph(graph: Graph, structural: Structural | None, *, directed: bool) -> Draft:
    """The draft of a graph that was read before."""
    if directed and not graph.directed:
        raise InputError(
            "this graph is already undirected; leave directed out or read it again from its source"
        )
    if structural is not None:
        raise InputError(f"this graph has features already; leave out structural {structural!r}")
    sources = np.repeat(np.arange(graph.num_nodes), graph.degrees)
    kept = tuple(note for note in graph.notes if note != ALL_ZERO)
    return Draft(sources, graph.columns, graph.node_ids, weights=graph.weights, notes=kept)


def _draft(source: Any, options: Options, *, directed: bool) -> Draft:
    if isinstance(source, str | PathLike):
        path = Path(source)
        with naming(path):
            return replace(_draft_file(path, options, directed=directed), origin=str(path))
    if comes_from(source, "networkx"):
        if source.is_directed() and not directed:
            kind = type(source).__name__
            note(f"the {kind} is read as undirected: its edges go both ways; directed=True keeps them")
        return _draft_network(source, "a NetworkX graph", options, directed=directed)
    if is_frame(source):
        from spgcl.io.edges import read_edge_list

        options.refuse_all_but(*EDGE_OPTIONS, kind="a table")
        return read_edge_list(source, options)
    weighted = _uses_weights(f"a {type(source).__name__}", options)
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


def _draft_file(path: Path, options: Options, *, directed: bool) -> Draft:
    suffix = suffix_of(path)
    if suffix in NETWORKS or (suffix == ".edgelist" and b"{" in read_bytes(path)):
        from spgcl.io.networks import read_network

        return _draft_network(read_network(path, suffix), str(path), options, directed=directed)
    if suffix in EDGE_LISTS:
        from spgcl.io.edges import read_edge_list

        options.refuse_all_but(*EDGE_OPTIONS, kind=str(path))
        return read_edge_list(path, options)
    weighted = _uses_weights(str(path), options)
    if suffix in MATRICES or (suffix == ".npz" and holds_matrix(path)):
        from spgcl.io.matrices import read_adjacency

        return read_adjacency(path, suffix, weighted=weighted)
    if suffix in SAVED_DATA or suffix == ".npz":
        from spgcl.io.saved import read_archive, read_saved_data

        return read_archive(path) if suffix == ".npz" else read_saved_data(path, weighted=weighted)
    endings = ", ".join((*EDGE_LISTS, *NETWORKS, *MATRICES, *SAVED_DATA, ".npz"))
    by_name = "" if suffix else f"; a benchmark is loaded by name: spgcl.load({str(path)!r})"
    raise InputError(f"cannot read a graph file with the ending {suffix!r}; use one of {endings}{by_name}")


def _draft_network(network: Any, kind: str, options: Options, *, directed: bool) -> Draft:
    from spgcl.io.networks import from_networkx

    options.refuse_all_but("weight_column", "feature_attributes", kind=kind)
    attributes, weight = options.feature_attributes, options.weight_column
    return from_networkx(network, attributes=attributes, weight=weight, directed=directed)


def _uses_weights(kind: str, options: Options) -> bool:
    """Whether weights are used, for a source in which no column can be named."""
    weighted = options.weight_column != NO_WEIGHTS
    options.refuse_all_but(*(() if weighted else ("weight_column",)), kind=kind)
    return weighted


def _assemble(
    draft: Draft, given: NodeFeatures | None, *, structural: Structural | None, directed: bool
) -> Graph:
    """Join edges and features into a Graph, which validates the edges."""
    if structural is None and given is None and draft.features is None:
        raise _no_features(draft)
    if structural is not None and (given is not None or draft.features is not None):
        raise InputError(f"there are features already; leave out structural {structural!r}")
    if given is not None:
        draft = _joined(draft, given)
    graph = Graph.from_edges(
        draft.sources,
        draft.targets,
        # Replaced below.
        np.zeros((len(draft.node_ids), 1), dtype=np.float32),
        weights=draft.weights,
        node_ids=draft.node_ids,
        directed=directed,
        notes=draft.notes,
    )
    if structural is not None:
        graph = with_structural(graph, structural)
        return replace(graph, notes=(*graph.notes, made_note(graph.num_features, structural)))
    if given is not None:
        graph = replace(graph, features=given.matrix, feature_names=given.names, encoding=given.encoding)
    else:
        graph = graph.with_features(draft.features, draft.feature_names)
    numbers = graph.features.data if sparse.issparse(graph.features) else graph.features
    return graph if np.any(numbers) else replace(graph, notes=(*graph.notes, ALL_ZERO))


def made_note(count: int, structural: str) -> str:
    """A note that features were made."""
    return f"{count} structural features ({structural}) made, as there are none"


def _no_features(draft: Draft) -> InputError:
    listed = ",".join(" ".join(name.split()) for name in draft.attributes[:5])
    more = ",..." if len(draft.attributes) > 5 else ""
    from_nodes = f" take them from node attributes (--attributes {listed}{more})," if listed else ""
    return NoFeaturesError(
        f"no features; give them (--features FILE),{from_nodes} or compute some from the structure "
        "(--structural degree|spectral, of triples also relations)"
    )


def _joined(draft: Draft, given: NodeFeatures) -> Draft:
    """The draft over the nodes of the features."""
    notes = (*draft.notes, *given.notes)
    if draft.features is not None:
        notes = (*notes, "the graph's own features ignored, as others are given")
    num_rows = given.matrix.shape[0]
    if given.ids is None and draft.complete:
        if num_rows != len(draft.node_ids):
            expected = f"expected {len(draft.node_ids)} feature rows, one per node"
            raise InputError(f"{expected}; found {num_rows} in {given.origin}")
        return replace(draft, notes=notes)
    if given.ids is None and not is_integer(draft.node_ids):
        raise InputError(
            f"edges name nodes by text ({draft.node_ids[0]!r}), but the rows of {given.origin} are nodes "
            f"0 to {num_rows - 1}; give features as a table with an id column"
        )
    ids = np.arange(num_rows) if given.ids is None else given.ids
    positions = positions_of(draft.node_ids, ids)
    if (positions < 0).any():
        raise _unknown_node(draft, given, int(np.argmin(positions)))
    return replace(
        draft,
        sources=positions[draft.sources],
        targets=positions[draft.targets],
        node_ids=ids,
        notes=notes,
    )


def _unknown_node(draft: Draft, given: NodeFeatures, position: int) -> InputError:
    touching = np.flatnonzero((draft.sources == position) | (draft.targets == position))
    edge = f"{draft.where(int(touching[0]))}: " if len(touching) else ""
    known = f"nodes 0 to {given.matrix.shape[0] - 1}"
    if given.ids is not None:
        known = f"ids such as {shown(given.ids.tolist()[0])}"
    return InputError(
        f"{edge}node {shown(draft.node_ids.tolist()[position])} is not in {given.origin} ({known}); "
        "add its row or drop the edge"
    )
