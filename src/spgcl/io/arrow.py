"""Between NumPy and Arrow, by their buffers.

Arrow's own conversions import pandas first, wherever it is installed, to ask whether they were given some of
it. That takes longer than reading or writing most graphs, so these ways lead around it.
"""

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def numbers_to_arrow(values: NDArray[Any]) -> pa.Array:
    """An array of integers or floats."""
    flat = np.ascontiguousarray(values)
    kind = pa.from_numpy_dtype(flat.dtype)
    return pa.Array.from_buffers(kind, flat.size, [None, pa.py_buffer(flat)])


def text_to_arrow(values: NDArray[Any]) -> pa.Array:
    """An array of text."""
    encoded = [str(value).encode("utf-8") for value in values.tolist()]
    ends = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(one) for one in encoded], out=ends[1:])
    # Offsets of four bytes, as everybody reads them, end at two gibibytes of text.
    kind, offsets = (pa.string(), np.int32) if ends[-1] < 2**31 else (pa.large_string(), np.int64)
    parts = [None, pa.py_buffer(ends.astype(offsets)), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(kind, len(encoded), parts)


def from_arrow(values: pa.Array | pa.ChunkedArray) -> NDArray[Any]:
    """Numbers, truth values or text, none of them missing."""
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        return text_from_arrow(values)
    return truths_from_arrow(values) if pa.types.is_boolean(values.type) else numbers_from_arrow(values)


def numbers_from_arrow(values: pa.Array | pa.ChunkedArray) -> NDArray[Any]:
    """Integers or floats, none of them missing."""
    parts = [np.from_dlpack(chunk) for chunk in _chunks(values)]
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.empty(0, dtype=values.type.to_pandas_dtype())


def truths_from_arrow(values: pa.Array | pa.ChunkedArray) -> NDArray[np.bool_]:
    """Truth values, none of them missing."""
    return numbers_from_arrow(values.cast(pa.uint8())).astype(np.bool_)


def text_from_arrow(values: pa.Array | pa.ChunkedArray) -> NDArray[Any]:
    """Text as str objects, none of it missing."""
    words: list[str] = []
    for chunk in _chunks(values):
        offsets = np.int64 if pa.types.is_large_string(chunk.type) else np.int32
        _, places, content = chunk.buffers()
        ends = np.frombuffer(places, dtype=offsets)[chunk.offset : chunk.offset + len(chunk) + 1].tolist()
        text = memoryview(content or b"")
        words += [str(text[start:end], "utf-8") for start, end in pairwise(ends)]
    # Filled in, as an array made of the list would look at every word.
    found = np.empty(len(words), dtype=object)
    found[:] = words
    return found


def _chunks(values: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    return [chunk for chunk in chunks if len(chunk)]
