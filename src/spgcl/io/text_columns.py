"""Text as a few numbers: hashed pieces of words, weighted by how rare they are, on their principal axes."""

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

# Pieces of this many characters are counted, words being padded by blanks, in so many buckets.
_PIECE = 3
_BUCKETS = 1024
_WIDTH = 30
_DIGITS = 5


def learn_text(words: Sequence[str]) -> dict[str, Any]:
    """Weights of the buckets and axes of the texts, as plain numbers."""
    counts = _counts(words)
    seen = np.asarray((counts > 0).sum(axis=0)).ravel()
    weights = np.log((1 + len(words)) / (1 + seen)) + 1
    rows = _unit_rows(counts, weights)
    energies, axes = np.linalg.eigh((rows.T @ rows).toarray())
    count = min(_WIDTH, int((energies > 1e-9 * max(energies[-1], 1e-30)).sum()))
    leading = axes[:, ::-1][:, :count]
    leading = leading * np.sign(leading[np.abs(leading).argmax(axis=0), np.arange(count)])
    used = np.flatnonzero(seen)
    return {
        "buckets": used.tolist(),
        "weights": _kept(weights[used]),
        "axes": [_kept(row) for row in leading[used]],
    }


def text_columns(words: Sequence[str], learned: Mapping[str, Any]) -> NDArray[np.float64]:
    """One row of a few numbers per text, by what was learned; pieces that were not seen count for nothing."""
    used = np.array(learned["buckets"], dtype=np.int64)
    rows = _unit_rows(_counts(words)[:, used], np.array(learned["weights"]))
    return np.asarray(rows @ np.array(learned["axes"]), dtype=np.float64)


def _kept(values: NDArray[np.float64]) -> list[float]:
    """Numbers as they are kept: what is applied is what was written."""
    return [float(f"{value:.{_DIGITS}g}") for value in values.tolist()]


def _counts(words: Sequence[str]) -> sparse.csr_array:
    """How often each text has a piece in each bucket."""
    columns: list[int] = []
    ends = [0]
    for text in words:
        for word in text.lower().split():
            padded = f" {word} ".encode()
            columns += [
                zlib.crc32(padded[start : start + _PIECE]) % _BUCKETS
                for start in range(len(padded) - _PIECE + 1)
            ]
        ends.append(len(columns))
    found = sparse.csr_array((np.ones(len(columns)), columns, ends), shape=(len(words), _BUCKETS))
    found.sum_duplicates()
    return found


def _unit_rows(counts: sparse.csr_array, weights: NDArray[np.float64]) -> sparse.csr_array:
    rows = sparse.csr_array(counts.multiply(weights[None, :]))
    lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    return sparse.csr_array(sparse.diags_array(1 / np.where(lengths > 0, lengths, 1)) @ rows)
