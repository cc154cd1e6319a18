"""Embeddings as points of a plane, for people to look at: principal components, or UMAP where it is there."""

import importlib.util
import warnings
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spgcl.engine.similarity import LARGEST, SMALLEST
from spgcl.errors import InputError
from spgcl.io.embeddings import Coordinates

# Directions are found from this many rows, spread evenly; all rows are then projected on them.
_MOST_ROWS = 100_000
_BLOCK_ROWS = 2**16
# More directions than are asked for bring the leading ones close to exact after a few passes.
_OVERSAMPLED = 8
_PASSES = 4


def principal_components(vectors: NDArray[np.float32], count: int) -> NDArray[np.float32]:
    """The leading principal components of each row, shape (rows, count); columns that do not exist are zero.

    The same bytes for the same rows and number of threads: the random start is seeded, and of the two
    directions of an axis the one in which its largest entry is positive is taken.
    """
    matrix, scale = _scaled(torch.from_numpy(np.ascontiguousarray(vectors, dtype=np.float32)))
    places = np.linspace(0, len(matrix) - 1, min(len(matrix), _MOST_ROWS)).astype(np.int64)
    rows = matrix if len(places) == len(matrix) else matrix[torch.from_numpy(places)]
    centre = rows.mean(dim=0)
    rank = min(count + _OVERSAMPLED, *rows.shape)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        axes = torch.pca_lowrank(rows - centre, q=rank, center=False, niter=_PASSES)[2][:, :count]
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
    """A matrix that float32 can square, and what it was divided by: its largest absolute entry, or 1."""
    largest = max(float(matrix.max()), -float(matrix.min()))
    if not largest or SMALLEST <= largest <= LARGEST:
        return matrix, 1.0
    return matrix / largest, largest


def principal_plane(vectors: NDArray[np.float32]) -> Coordinates:
    """The first two principal components, which every run gets when it is fitted."""
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
    """UMAP by cosine distance, started from the principal plane, on one thread so that it can be repeated.

    Vectors that have all collapsed into one have no such layout, and get their principal plane.

    Args:
        vectors: One row a node.
        nearest: The most similar other nodes of every node, shape (nodes, count).
        similarities: Their cosine similarities.
        seed: Decides the layout.
    """
    with warnings.catch_warnings():
        # About parts of it that are not used here: TensorFlow, and placing nodes afterwards.
        warnings.simplefilter("ignore")
        umap = _import_umap()
        own = np.arange(len(vectors))[:, None]
        indices = np.concatenate([own, nearest], axis=1).astype(np.int32)
        distances = np.concatenate([np.zeros_like(own), 1 - similarities], axis=1).clip(min=0)
        plane = principal_plane(vectors).points
        layout = umap.UMAP(
            n_neighbors=indices.shape[1],
            metric="cosine",
            # Wider than the usual 0.1: nodes of one neighbourhood are drawn beside, not upon each other.
            min_dist=0.4,
            init=10 * plane / (float(np.abs(plane).max()) or 1.0),
            random_state=seed,
            n_jobs=1,
            precomputed_knn=(indices, distances.astype(np.float32), None),
            force_approximation_algorithm=True,
        )
        threads = torch.get_num_threads()
        points = layout.fit_transform(vectors)
        # Numba may share torch's OpenMP library, and leaves its own number of threads behind.
        torch.set_num_threads(threads)
    if not np.isfinite(points).all():
        return principal_plane(vectors)
    return Coordinates(np.ascontiguousarray(points, dtype=np.float32), "umap")


def _import_umap() -> Any:
    try:
        import umap
    except ImportError:
        raise InputError(
            "UMAP is not installed; install it with pip install 'spgcl[report]', or use --projection pca"
        ) from None
    return umap
