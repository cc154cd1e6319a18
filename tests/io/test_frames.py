"""Tables in memory of any library that hands out Arrow data, as edges, features and labels."""

import duckdb
import numpy as np
import pandas
import polars
import pyarrow as pa
import pytest
from graphs import arcs_of, refusing

import spgcl
from spgcl import Graph
from spgcl.io import read_labels

EDGES = {"weight": [1.0, 2.0, 1.5], "target": ["b", "c", "a"], "source": ["a", "b", "c"]}
FEATURES = {"x": [1.0, 2.0, 3.0], "id": ["c", "a", "b"], "y": [4.0, 5.0, 6.0]}
LABELS = {"id": ["a", "b", "c"], "kind": ["u", "v", None]}


class Stream:
    """Nothing but the Arrow PyCapsule interface."""

    def __init__(self, columns):
        self._table = pa.table(columns)

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


def relation(columns):
    table = pa.table(columns)
    return duckdb.from_arrow(table)


LIBRARIES = {
    "pandas": pandas.DataFrame,
    "polars": polars.DataFrame,
    "pyarrow": pa.table,
    "duckdb": relation,
    "capsule": Stream,
    "categories": lambda columns: pandas.DataFrame(columns).astype(
        {name: "category" for name, values in columns.items() if isinstance(values[0], str)}
    ),
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_columns_are_found_by_their_names(library):
    make = LIBRARIES[library]
    graph = Graph.of(make(EDGES), make(FEATURES))
    assert graph.node_ids.tolist() == ["c", "a", "b"] and graph.feature_names == ("x", "y")
    assert graph.features.tolist() == [[1, 4], [2, 5], [3, 6]]
    assert arcs_of(graph) == {(1, 2): 1, (2, 1): 1, (2, 0): 2, (0, 2): 2, (0, 1): 1.5, (1, 0): 1.5}
    labels, names = read_labels(make(LABELS), graph)
    assert labels.tolist() == [-1, 0, 1] and names == ("u", "v")
    assert Graph.of((make(EDGES), make(FEATURES))).digest == graph.digest


def test_the_index_of_pandas_names_the_nodes():
    features = pandas.DataFrame(FEATURES).set_index("id")
    graph = Graph.of(pandas.DataFrame(EDGES), features)
    assert graph.node_ids.tolist() == ["c", "a", "b"] and graph.num_features == 2
    labels = pandas.Series(["u", "v", "u"], index=["a", "b", "c"])
    for given in (labels, labels.to_dict()):
        assert read_labels(given, graph)[0].tolist() == [0, 0, 1]
    assert read_labels(["u", "v", "u"], graph)[0].tolist() == [0, 1, 0]
    assert read_labels(np.array([3, 1, 1]), graph)[0].tolist() == [1, 0, 0]


def test_columns_by_choice():
    table = pa.table({**EDGES, "year": [1, 2, 3], "to_": EDGES["target"]})
    with refusing("'year'"):
        Graph.of(table, pa.table(FEATURES))
    graph = spgcl.io.read_graph(
        table, pa.table(FEATURES), source_column="source", target_column="to_", weight_column="year"
    )
    assert sorted(set(graph.weights.tolist())) == [1, 2, 3]


def test_what_is_refused():
    with refusing("no rows"):
        Graph.of(pandas.DataFrame({"source": [], "target": []}), structural="degree")
    with refusing("DataFrame, row 1", "missing"):
        Graph.of(pandas.DataFrame({"source": ["a", None], "target": ["b", "c"]}), structural="degree")
    with refusing("'z' is not in"):
        Graph.of(pandas.DataFrame({"source": ["a"], "target": ["z"]}), pandas.DataFrame(FEATURES))
    with refusing("cannot be read as a table"):
        Graph.of(pandas.DataFrame({"source": ["a", 1], "target": [(2,), "c"]}), structural="degree")
    with refusing("the dict", "'q' is not in the graph"):
        read_labels({"q": 1}, Graph.of([["a", "b"], ["b", "c"], ["a", "c"]], structural="degree"))
