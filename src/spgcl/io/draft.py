"""What every reader returns: edges between known ids, to be joined with features into a Graph."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spgcl.errors import InputError
from spgcl.io.arrow import chunks_of, from_arrow

if TYPE_CHECKING:
    from pyarrow import Array, ChunkedArray

# As the name of a weight column: the graph has no weights, whatever the source holds.
NO_WEIGHTS = "none"
# The options of the command line that set these fields of `Options`.
_FLAGS = {
    "source_column": "--source",
    "target_column": "--target",
    "weight_column": "--weight",
    "feature_attributes": "--attributes",
    "bipartite": "--bipartite",
    "relations": "--structural relations",
}
# Those that mean something for a table of edges.
EDGE_OPTIONS = ("source_column", "target_column", "weight_column", "bipartite", "relations")


@dataclass(frozen=True)
class Options:
    """The columns and attributes of a source that a user named; see `spgcl.io.read_graph`."""

    source_column: str | None = None
    target_column: str | None = None
    weight_column: str | None = None
    feature_attributes: Sequence[str] | None = None
    bipartite: bool | None = None
    relations: bool | None = None

    def refuse_all_but(self, *used: str, kind: str) -> None:
        """Refuse options that mean nothing for a kind of source."""
        for name, value in vars(self).items():
            if value is not None and name not in used:
                raise InputError(f"{name}={value!r} does not apply to {kind}; leave it out ({_FLAGS[name]})")


@dataclass(frozen=True, eq=False)
class Relations:
    """A column of relations: the index into `names` of each edge."""

    column: str
    codes: NDArray[np.int64]
    names: list[str]


@dataclass(frozen=True, eq=False)
class Draft:
    """Edges as read, before features and validation.

    Attributes:
        sources: Index into `node_ids` per edge; `targets` alike.
        node_ids: All ids, int64 or str objects, all different.
        complete: Whether `node_ids` lists every node; an edge list knows only nodes with edges.
        features: The source's own features, if it has any.
        feature_names: Names of their columns, if they have any.
        attributes: Node attributes that could be features, by name.
        relations: The relation of every edge, if they are to be counted.
        origin: The file, or "" for an object in memory.
        where: Where edge i was found, in words.
    """

    sources: NDArray[np.integer[Any]]
    targets: NDArray[np.integer[Any]]
    node_ids: NDArray[Any]
    complete: bool = True
    features: Any = None
    feature_names: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()
    weights: NDArray[Any] | None = None
    notes: tuple[str, ...] = ()
    relations: Relations | None = None
    origin: str = ""
    where: Callable[[int], str] = "edge {}".format


def is_integer(ids: NDArray[Any]) -> bool:
    """Whether ids are numbers, not text."""
    return ids.dtype.kind in "iu"


def positions_of(wanted: NDArray[Any], known: NDArray[Any]) -> NDArray[np.int64]:
    """Index in `known` of every wanted id, -1 if there is none; text and numbers are compared as text."""
    if is_integer(wanted) and is_integer(known):
        order = np.argsort(known, kind="stable")
        found = order[np.searchsorted(known, wanted, sorter=order).clip(max=len(known) - 1)]
        return np.where(known[found] == wanted, found, -1)
    index = {str(node): position for position, node in enumerate(known.tolist())}
    return np.array([index.get(str(node), -1) for node in wanted.tolist()], dtype=np.int64)


def number_ids(
    sources: "Array | ChunkedArray", targets: "Array | ChunkedArray"
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]:
    """Index of both ends among the sorted distinct ids, and those ids.

    Ends are int64 or text in Arrow; numbers and text are compared as text. Finding distinct ids by hashing is
    several times faster than sorting all end points, and only distinct texts become str objects.
    """
    import pyarrow as pa
    from pyarrow import compute

    numbers = pa.types.is_integer(sources.type) and pa.types.is_integer(targets.type)
    kind = pa.int64() if numbers else pa.large_string()
    chunks = [chunk for ends in (sources, targets) for chunk in chunks_of(ends.cast(kind))]
    coded = pa.chunked_array(chunks, type=kind).combine_chunks().dictionary_encode()
    order = from_arrow(compute.sort_indices(coded.dictionary))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    ends = rank[from_arrow(coded.indices)]
    return ends[: len(sources)], ends[len(sources) :], from_arrow(coded.dictionary)[order]


def from_id_pairs(sources: "Array | ChunkedArray", targets: "Array | ChunkedArray", **known: Any) -> Draft:
    """A draft of edges given by the ids of their ends."""
    first, second, ids = number_ids(sources, targets)
    return Draft(first, second, ids, complete=False, **known)
