"""What a graph is, from Python, as the command `inspect` says it."""

from typing import Any

from spgcl.errors import note
from spgcl.graph.display import aligned, rows
from spgcl.report.words import RELIABILITY_COLUMNS, graph_rows, reliability_rows
from spgcl.runs.inspect import inspect_graph
from spgcl.runs.kept import in_memory, options_of


class Description(dict[str, Any]):
    """Size, degrees, where the signal is and, with labels, homophily; printed as the command prints it."""

    def __str__(self) -> str:
        found = self["without_labels"]
        channels = reliability_rows(found)
        table = aligned([RELIABILITY_COLUMNS, *channels]) if channels else []
        return "\n".join([*aligned(graph_rows(self)), *table, *found["verdict"]])

    def __repr__(self) -> str:
        return f"Description({self['name']}: {self['nodes']:,} nodes, {self['edges']:,} edges)"

    def _repr_html_(self) -> str:
        verdict = " ".join(self["without_labels"]["verdict"])
        return rows(verdict, ["property", "value"], graph_rows(self))


def inspect(graph: Any, features: Any = None, *, labels: Any = None, **reading: Any) -> Description:
    """Describe a graph, as `spgcl inspect` does; it needs no features.

    Args:
        graph: A data set's name, a path, or anything `Graph.of` reads.
        features: A path or an object, if the graph brings none.
        labels: See `FittedRun.evaluate`; homophily needs them.
        reading: How the graph is read, see `fit`.
    """
    given = features if in_memory(features) else None
    described = Description(inspect_graph(graph, options_of(reading, features), labels, given))
    for remark in described["notes"]:
        note(remark)
    return described
