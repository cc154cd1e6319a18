"""Ids of the ends of edges as indices: numbers, str objects and text in Arrow are numbered alike."""

import numpy as np
import pyarrow as pa
import pytest

from spgcl.io.arrow import to_arrow
from spgcl.io.draft import number_ids

WORDS = ["zoë", "b", "節", "10", "b"], ["9", "zoë", "b", "b", ""]
CHUNKS = [pa.chunked_array([ends[:2], [], ends[2:]], type=pa.string()) for ends in WORDS]
OBJECTS = [to_arrow(np.array(ends, dtype=object)) for ends in WORDS]


@pytest.mark.parametrize(("sources", "targets"), [CHUNKS, OBJECTS, (CHUNKS[0], OBJECTS[1])])
def test_text_is_numbered_in_its_order(sources, targets):
    first, second, ids = number_ids(sources, targets)
    assert ids.dtype == object
    assert ids.tolist() == sorted({*WORDS[0], *WORDS[1]})
    assert (ids[first].tolist(), ids[second].tolist()) == WORDS


def test_numbers_are_numbered_in_their_order():
    sources, targets = np.array([7, -3, 7]), np.array([2**40, 7, 10], dtype=np.uint64)
    first, second, ids = number_ids(to_arrow(sources), to_arrow(targets))
    assert ids.tolist() == [-3, 7, 10, 2**40]
    assert ids[first].tolist() == sources.tolist()
    assert ids[second].tolist() == targets.tolist()


def test_numbers_beyond_the_range_are_refused_and_not_wrapped():
    with pytest.raises(pa.ArrowInvalid, match="not in range"):
        number_ids(*(to_arrow(np.array([end], dtype=np.uint64)) for end in (1, 2**63)))


def test_numbers_and_text_meet_as_text():
    first, second, ids = number_ids(to_arrow(np.array([10, 9])), CHUNKS[0].slice(0, 2))
    assert ids.tolist() == ["10", "9", "b", "zoë"]
    assert (first.tolist(), second.tolist()) == ([0, 1], [3, 2])


def test_no_edges_have_no_ids():
    none = to_arrow(np.empty(0, dtype=object))
    first, second, ids = number_ids(none, none)
    assert (len(first), len(second), len(ids)) == (0, 0, 0)
