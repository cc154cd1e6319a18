"""Relations of triples as features: how often a node is source and target of each."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import sparse

from spgcl.errors import InputError
from spgcl.io.arrow import from_arrow
from spgcl.io.draft import Draft, Relations
from spgcl.io.features import NodeFeatures
from spgcl.io.tables import Table, id_column

# Names of columns that say what kind an edge is of.
NAMES = ("relation", "relationship", "rel", "predicate", "edge_type", "rel_type")


def relation_column(table: Table, unused: list[int]) -> int:
    """The column of relations: one with a usual name, else the only one besides ends and weights."""
    usual = [column for column in unused if table.names[column].lower() in NAMES] or unused
    if len(usual) != 1:
        listed = ", ".join(repr(table.names[column]) for column in unused) or "none besides ends and weights"
        raise InputError(
            f"{table.path}: --structural relations needs one column of relations, such as 'relation'; "
            f"found {listed}"
        )
    return usual[0]


def read_relations(table: Table, column: int) -> Relations:
    """A column of relations; an empty cell is an error."""
    words = id_column(table, column, what="relation").cast(pa.string())
    coded = pa.chunked_array(words if isinstance(words, pa.ChunkedArray) else [words]).combine_chunks()
    coded = coded.dictionary_encode()
    codes = from_arrow(coded.indices.cast(pa.int64()))
    return Relations(table.names[column], codes, coded.dictionary.to_pylist())


def count_relations(draft: Draft, relations: Relations, encoding: Mapping[str, Any] | None) -> NodeFeatures:
    """log(1 + edges) of every relation that begin at a node, and of those that end there.

    Relations are those that were learned from, if there is an encoding, else those of the edges.
    """
    learned = encoding["columns"][0]["values"] if encoding else sorted(relations.names)
    position = {relation: index for index, relation in enumerate(learned)}
    columns = np.array([position.get(relation, -1) for relation in relations.names])[relations.codes]
    known = columns >= 0
    shape = len(draft.node_ids), len(learned)
    counts = [
        sparse.csr_array((np.ones(known.sum(), np.float32), (ends[known], columns[known])), shape).log1p()
        for ends in (draft.sources, draft.targets)
    ]
    kinds = f"each of {len(learned):,} relations"
    notes = [f"{relations.column!r} counted: how often a node is source and target of {kinds}"]
    if not known.all():
        notes.append(f"edges whose relations were not learned from are not counted: {(~known).sum():,}")
    return NodeFeatures(
        sparse.csr_array(sparse.hstack(counts)),
        draft.node_ids,
        notes=tuple(notes),
        names=tuple(f"{end} of {relation}" for end in ("source", "target") for relation in learned),
        encoding={"columns": [{"name": relations.column, "kind": "relations", "values": learned}]},
    )
