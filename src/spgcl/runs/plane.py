"""Embeddings as points of a plane, to look at: principal components, or UMAP if it is installed."""

import importlib.util
import warnings

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spgcl.engine.axes import leading_axes
from spgcl.engine.similarity import LARGEST, SMALLEST
from spgcl.errors import InputError
from spgcl.io.embeddings import Coordinates

# Axes are computed from at most this many rows, spread evenly; all rows are then projected on them.
_MOST_ROWS = 100_000
_BLOCK_ROWS = 2**16


def principal_components(vectors: NDArray[np.float32], count: int) -> NDArray[np.float32]:
    """The leading principal components of each row, shape (rows, count), padded with zeros.

    The same bytes for the same rows and number of threads: the random start is seeded, and the sign of an
    axis is that which makes its largest entry positive.
    """
    matrix, scale = _scaled(torch.from_numpy(np.ascontiguousarray(vectors, dtype=np.float32)))
    sample = np.linspace(0, len(matrix) - 1, min(len(matrix), _MOST_ROWS)).astype(np.int64)
    rows = matrix if len(sample) == len(matrix) else matrix[torch.from_numpy(sample)]
    centre = rows.mean(dim=0)
    axes = leading_axes(rows - centre, count, torch.Generator().manual_seed(0))
    axes *= axes.gather(0, axes.abs().argmax(dim=0, keepdim=True)).sign()
    found = np.zeros((len(matrix), count), dtype=np.float32)
    for start in range(0, len(matrix), _BLOCK_ROWS):
        block = (matrix[start : start + _BLOCK_ROWS] - centre) @ axes
        found[start : start + _BLOCK_ROWS, : axes.shape[1]] = block.numpy()
    if scale == 1:
        return found
    limits = np.finfo(np.float32)
    return (scale * found.astype(np.float64)).clip(limits.min, limits.max).astype(np.float32)


def _scaled(matrix: Tensor) -> tuple[Tensor, float]:
    """A matrix whose squares fit into float32, and its divisor: the largest absolute entry, or 1."""
    largest = max(float(matrix.max()), -float(matrix.min()))
    if not largest or SMALLEST <= largest <= LARGEST:
        return matrix, 1.0
    return matrix / largest, largest


def principal_plane(vectors: NDArray[np.float32]) -> Coordinates:
    """The first two principal components; `fit` writes them with the embeddings."""
    return Coordinates(principal_components(vectors, 2), "pca")


def has_umap() -> bool:
    """Whether umap-learn is installed."""
    return importlib.util.find_spec("umap") is not None


def umap_plane(
    vectors: NDArray[np.float32],
    nearest: NDArray[np.int64],
    similarities: NDArray[np.float32],
    *,
    seed: int = 0,
) -> Coordinates:
    """UMAP by cosine distance, initialised with the principal plane, on one thread to be reproducible.

    If the layout is not finite, as for vectors that are all the same, the principal plane is returned.

    Args:
        vectors: One row per node.
        nearest: The most similar other nodes of every node, shape (nodes, count).
        similarities: Their cosine similarities.
        seed: Decides the layout.
    """
    if not has_umap():
        raise InputError(
            "UMAP is not installed; install it with pip install 'spgcl[report]', or use --projection pca"
        )
    with warnings.catch_warnings():
        # UMAP warns of parts that are not used here: TensorFlow, and transforming further nodes.
        warnings.simplefilter("ignore")
        try:
            import umap
        except RuntimeError as error:
            # Of Numba, if neither the installation nor the user's home can be written.
            raise InputError(
                f"UMAP: {error}; set NUMBA_CACHE_DIR to a folder of yours, or use --projection pca"
            ) from None
        own = np.arange(len(vectors))[:, None]
        indices = np.concatenate([own, nearest], axis=1).astype(np.int32)
        distances = np.concatenate([np.zeros_like(own), 1 - similarities], axis=1).clip(min=0)
        plane = principal_plane(vectors).points
        layout = umap.UMAP(
            n_neighbors=indices.shape[1],
            metric="cosine",
            # Wider than the default 0.1, so that nodes of one neighbourhood do not overlap.
            min_dist=0.4,
            init=10 * plane / (float(np.abs(plane).max()) or 1.0),
            random_state=seed,
            n_jobs=1,
            precomputed_knn=(indices, distances.astype(np.float32), None),
            force_approximation_algorithm=True,
        )
        threads = torch.get_num_threads()
        points = layout.fit_transform(vectors)
        # Numba may use torch's OpenMP library and change its number of threads.
        torch.set_num_threads(threads)
    if not np.isfinite(points).all():
        return principal_plane(vectors)
    return Coordinates(np.ascontiguousarray(points, dtype=np.float32), "umap")
