"""The leading eigenvectors of a normalised graph, with the multiplicity of the eigenvalue 1 exact."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph
from scipy.sparse.linalg import LinearOperator, eigsh

from spgcl.errors import InputError
from spgcl.theory.transformed import symmetric_normalised

# Below this, a dense solver is as fast; it also serves when nearly all eigenvectors are asked for.
_DENSE_NODES = 400
# Eigenvalues above the cut are pulled apart by a polynomial of this degree before Lanczos iterations.
_CUT, _DEGREE = 0.5, 8
# Values of the polynomial closer to 1 than this may belong to eigenvalues on either side of the cut.
_SURE = 1e-3

Product = Callable[[NDArray[np.float64]], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The largest eigenvalues of D^-1/2 A D^-1/2 in descending order, and their eigenvectors as columns."""

    values: NDArray[np.float64]
    vectors: NDArray[np.float64]
    components: int


def leading(adjacency: sparse.csr_array, count: int) -> Spectrum:
    """The `count` largest eigenvalues of the normalised adjacency matrix.

    Every connected component contributes an eigenvalue 1 whose eigenvector is known. Lanczos iterations from
    one start find such copies late or not at all, so they are moved out of the way first.
    """
    num_nodes = adjacency.shape[0]
    if not 1 <= count <= num_nodes:
        raise InputError(f"{count} eigenvectors of {num_nodes} nodes; use fewer dimensions")
    matrix = symmetric_normalised(adjacency)
    components, member = csgraph.connected_components(adjacency, directed=False)
    sparsely = _constants(adjacency, components, member)
    known = sparsely[:, :count].toarray()
    if components >= count:
        return Spectrum(np.ones(count), known, components)
    if num_nodes <= max(_DENSE_NODES, 2 * count):
        values, vectors = np.linalg.eigh(matrix.toarray() - 2 * known @ known.T)
        values, vectors = values[components - count :], vectors[:, components - count :]
    else:
        values, vectors = _lanczos(matrix, sparsely, count - components)
    order = np.argsort(-values)
    return Spectrum(
        np.concatenate([np.ones(components), values[order]]),
        np.concatenate([known, vectors[:, order]], axis=1),
        components,
    )


def _constants(adjacency: sparse.csr_array, components: int, member: NDArray[np.int32]) -> sparse.csr_array:
    """Eigenvectors of the eigenvalue 1: roots of the degrees within one component, with length one."""
    degrees = adjacency.sum(axis=1)
    volumes = np.bincount(member, weights=degrees, minlength=components)
    entries = (np.sqrt(degrees / volumes[member]), (np.arange(len(member)), member))
    return sparse.csr_array(entries, shape=(len(member), components))


def _lanczos(
    matrix: sparse.csr_array, known: sparse.csr_array, count: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Largest eigenpairs of `matrix` after the known eigenvalues 1 have become -1."""

    def multiply(vector: NDArray[np.float64]) -> NDArray[np.float64]:
        flat = vector.reshape(-1)
        return np.asarray(matrix @ flat - 2 * (known @ (known.T @ flat)))

    values, vectors = _largest(_stretched(multiply), matrix.shape, count)
    if values.min() <= 1 + _SURE:
        # Some of them are below the cut, where the polynomial does not keep their order.
        return _largest(multiply, matrix.shape, count)
    return (vectors * (matrix @ vectors)).sum(axis=0), vectors


def _stretched(multiply: Product) -> Product:
    """A Chebyshev polynomial of a matrix with eigenvalues -1 to 1: at most 1 up to the cut, steep above.

    Lanczos iterations spend their time on keeping vectors orthogonal. With eigenvalues further apart they
    need several times fewer, each with a few more products with the sparse matrix, which are cheap.
    """

    def mapped(vector: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray((2 * multiply(vector) + (1 - _CUT) * vector) / (1 + _CUT))

    def polynomial(vector: NDArray[np.float64]) -> NDArray[np.float64]:
        before = vector.reshape(-1)
        current = mapped(before)
        for _ in range(_DEGREE - 1):
            before, current = current, 2 * mapped(current) - before
        return current

    return polynomial


def _largest(
    multiply: Product, shape: tuple[int, ...], count: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    start = np.random.default_rng(0).standard_normal(shape[0])
    operator = LinearOperator(shape, matvec=multiply, dtype=np.float64)
    # Of a symmetric matrix, eigenvalues are off by the square of the residual only.
    values, vectors = eigsh(operator, k=count, which="LA", v0=start, tol=1e-6)
    return values, vectors
