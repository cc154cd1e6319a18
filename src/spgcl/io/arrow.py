"""Conversion between NumPy and Arrow through their buffers.

Arrow's own conversions import pandas, if it is installed, to check for its objects. That takes longer than
reading or writing most graphs.
"""

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from pyarrow import Array, ChunkedArray


def to_arrow(values: NDArray[Any]) -> "Array":
    """An Arrow array of integers, floats or text."""
    import pyarrow as pa

    if values.dtype.kind in "iuf":
        flat = np.ascontiguousarray(values)
        return pa.Array.from_buffers(pa.from_numpy_dtype(flat.dtype), flat.size, [None, pa.py_buffer(flat)])
    encoded = [str(value).encode("utf-8") for value in values.tolist()]
    ends = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(one) for one in encoded], out=ends[1:])
    # The usual offsets of four bytes can address two gibibytes of text.
    kind, offsets = (pa.string(), np.int32) if ends[-1] < 2**31 else (pa.large_string(), np.int64)
    parts = [None, pa.py_buffer(ends.astype(offsets)), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(kind, len(encoded), parts)


def from_arrow(values: "Array | ChunkedArray") -> NDArray[Any]:
    """Numbers, truth values or text (as str objects), none of them missing."""
    import pyarrow as pa

    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        return _text(values)
    if pa.types.is_boolean(values.type):
        return from_arrow(values.cast(pa.uint8())).astype(np.bool_)
    parts = [np.from_dlpack(chunk) for chunk in chunks_of(values)]
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.empty(0, dtype=values.type.to_pandas_dtype())


def _text(values: "Array | ChunkedArray") -> NDArray[Any]:
    words: list[str] = []
    for chunk in chunks_of(values):
        _, ends, content = chunk.buffers()
        width = np.int64 if str(chunk.type) == "large_string" else np.int32
        ends = np.frombuffer(ends, dtype=width)[chunk.offset : chunk.offset + len(chunk) + 1].tolist()
        text = memoryview(content or b"")
        words += [str(text[start:end], "utf-8") for start, end in pairwise(ends)]
    # Assigned to a slice: `np.array` would inspect every word.
    found = np.empty(len(words), dtype=object)
    found[:] = words
    return found


def chunks_of(values: "Array | ChunkedArray") -> "list[Array]":
    """The parts of an array that are not empty."""
    chunks = values.chunks if hasattr(values, "chunks") else [values]
    return [chunk for chunk in chunks if len(chunk)]
