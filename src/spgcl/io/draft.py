"""What every reader hands over: edges between known ids, to be joined with features into a Graph."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from spgcl.errors import InputError

if TYPE_CHECKING:
    from pyarrow import Array, ChunkedArray

    # Numbers, str objects, or text that Arrow holds.
    Ids: TypeAlias = NDArray[Any] | ChunkedArray

# Given as the name of a weight column, it says that edges have no weights, whatever the source holds.
NO_WEIGHTS = "none"
# What arguments of `read_graph` are called on the command line.
_OPTIONS = {
    "source_column": "--source",
    "target_column": "--target",
    "weight_column": "--weight",
    "feature_attributes": "--attributes",
}


@dataclass(frozen=True, eq=False)
class Draft:
    """Edges as read, before features and validation.

    Attributes:
        sources: Positions in `node_ids`, one an edge; so are `targets`.
        node_ids: All ids, int64 or str objects, all different.
        complete: Whether `node_ids` lists every node; an edge list knows only the nodes with edges.
        features: The source's own features, if it has any.
        feature_names: Names of their columns, where there are any.
        attributes: Node attributes that could be features, by name.
        origin: The file, or "" for an object in memory.
        place: Where edge i was found, in words.
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
    origin: str = ""
    place: Callable[[int], str] = "edge {}".format


def is_integer(ids: NDArray[Any]) -> bool:
    """Whether ids are numbers rather than text."""
    return ids.dtype.kind in "iu"


def as_text(ids: NDArray[Any]) -> NDArray[Any]:
    """Ids as str objects."""
    return np.array([str(node) for node in ids.tolist()], dtype=object)


def positions_of(wanted: NDArray[Any], known: NDArray[Any]) -> NDArray[np.int64]:
    """Position in `known` of every wanted id, -1 where there is none; text and numbers meet as text."""
    if is_integer(wanted) and is_integer(known):
        order = np.argsort(known, kind="stable")
        found = order[np.searchsorted(known, wanted, sorter=order).clip(max=len(known) - 1)]
        return np.where(known[found] == wanted, found, -1)
    where = {node: position for position, node in enumerate(as_text(known).tolist())}
    return np.array([where.get(node, -1) for node in as_text(wanted).tolist()], dtype=np.int64)


def number_ids(sources: "Ids", targets: "Ids") -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]:
    """Positions of both ends among the sorted ids that occur, and those ids.

    Hashing finds the distinct ids several times faster than sorting all end points does, and text that Arrow
    holds becomes str objects for the distinct ones alone.
    """
    import pyarrow as pa
    from pyarrow import compute

    from spgcl.io.arrow import from_arrow, numbers_from_arrow, numbers_to_arrow

    if all(isinstance(ids, np.ndarray) and is_integer(ids) for ids in (sources, targets)):
        both = numbers_to_arrow(np.concatenate([sources, targets])).cast(pa.int64())
    else:
        both = _joined_text(sources, targets)
    coded = both.dictionary_encode()
    order = numbers_from_arrow(compute.sort_indices(coded.dictionary))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    places = rank[numbers_from_arrow(coded.indices)]
    return places[: len(sources)], places[len(sources) :], from_arrow(coded.dictionary)[order]


def _joined_text(*parts: "Ids") -> "Array":
    import pyarrow as pa

    chunks: list[Array] = []
    for ids in parts:
        if isinstance(ids, np.ndarray):
            chunks.append(pa.array(as_text(ids) if is_integer(ids) else ids, type=pa.large_string()))
        else:
            chunks += ids.cast(pa.large_string()).chunks
    return pa.chunked_array(chunks, type=pa.large_string()).combine_chunks()


def from_id_pairs(sources: "Ids", targets: "Ids", **known: Any) -> Draft:
    """A draft of edges given by the ids of their ends."""
    first, second, ids = number_ids(sources, targets)
    return Draft(first, second, ids, complete=False, **known)


def first_edge_of(draft: Draft, position: int) -> str:
    """Where the first edge of a node is, in words; "" for a node without edges."""
    touching = np.flatnonzero((draft.sources == position) | (draft.targets == position))
    if len(touching):
        return draft.place(int(touching[0]))
    return draft.origin


def refuse_columns(kind: str, **columns: Any) -> None:
    """Raise if an option names columns of a source that has none."""
    for option, value in columns.items():
        if value is not None:
            raise InputError(
                f"{option}={value!r} does not apply to {kind}; leave it out ({_OPTIONS[option]})"
            )
