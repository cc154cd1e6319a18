"""Lemmas 1 and 2: the contrastive loss as a matrix factorisation, and what minimises it."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import subspace_angles
from scipy.optimize import minimize
from scipy.sparse.linalg import eigsh

from spgcl.errors import InputError
from spgcl.graph import Graph
from spgcl.theory.spectrum import leading
from spgcl.theory.transformed import pair_matrix, symmetric_normalised, transform, undirected

Matrix = NDArray[np.float64]

# Eigenvalues closer than this do not fix their eigenvectors to the digits that descent reaches.
_DISTINCT = 1e-4
# Below this number of nodes, a dense solver finds eigenvalues as fast.
_DENSE_NODES = 400


@dataclass(frozen=True)
class Identities:
    """How far three forms of Lemma 1 are from equal, relative to the size of the losses.

    Every loss is compared with that of a factorisation up to its constant, for the same representations.

    Attributes:
        printed: Nodes drawn uniformly, against the normalised undirected graph: Lemma 1 as printed.
        predicted: What the printed form is off by, computed from the difference of the two matrices.
        by_degree: Nodes and pairs drawn by degree, against the normalised undirected graph.
        averaged: Nodes drawn uniformly, against the average of the selected pairs and their reverse.
    """

    printed: float
    predicted: float
    by_degree: float
    averaged: float


@dataclass(frozen=True)
class Descent:
    """What gradient descent on the contrastive loss finds from a random start.

    Attributes:
        excess: Loss above the least possible one, relative to the least.
        angle: Largest principal angle in degrees between what was found and the leading eigenvectors.
        printed_angle: The same against the leading eigenvectors of the normalised undirected graph.
        eigengap: Distance of the last used eigenvalue to the next, which decides how sharp the angle is.
        steps: Gradient steps.
    """

    excess: float
    angle: float
    printed_angle: float
    eigengap: float
    steps: int


@dataclass(frozen=True)
class Factorisation:
    """Lemmas 1 and 2 on a graph.

    Attributes:
        random: Lemma 1 at random representations.
        minimiser: Lemma 1 at the representations that descent found.
    """

    nodes: int
    positives: int
    dimensions: int
    least_degree: int
    largest_degree: int
    random: Identities
    minimiser: Identities
    descent: Descent

    @property
    def regular(self) -> bool:
        """Whether all nodes of the transformed graph have one degree, as the proof of Lemma 1 assumes."""
        return self.least_degree == self.largest_degree

    @property
    def verdict(self) -> list[str]:
        """What the numbers say, in sentences."""
        if self.regular:
            first = "The transformed graph is regular: Lemma 1 holds as printed."
        else:
            first = (
                "The transformed graph is not regular "
                f"(degrees {self.least_degree} to {self.largest_degree}): as printed, "
                f"Lemma 1 is off by {self.minimiser.printed:.2g} of the loss at the minimiser. "
                "Drawn by degree, or with the averaged matrix, it is exact."
            )
        if self.descent.eigengap < _DISTINCT:
            return [first, "The leading eigenvectors are not unique: only the loss can be compared."]
        found = f"Descent ends {self.descent.angle:.2g} degrees from the leading eigenvectors"
        return [first, f"{found}; the eigengap is {self.descent.eigengap:.2g}."]

    def as_record(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "regular": self.regular, "verdict": self.verdict}


def factorisation(
    graph: Graph, *, positives: int = 5, dimensions: int = 8, steps: int = 2000, seed: int = 0
) -> Factorisation:
    """Lemmas 1 and 2 on a graph.

    Args:
        graph: The original graph.
        positives: How many nodes each node selects, K_pos in the paper.
        dimensions: Columns of the representations, K in the paper.
        steps: Gradient steps at most.
        seed: Decides the weights of the layer and the start of the descent.
    """
    selected = transform(graph, positives=positives, seed=seed).selected
    if not 1 <= dimensions < len(selected) - 1:
        raise InputError(f"dimensions is {dimensions}; {len(selected)} nodes need 1 to {len(selected) - 2}")
    return factorised(selected, dimensions, steps=steps, seed=seed)


def factorised(selected: NDArray[np.int64], dimensions: int, *, steps: int, seed: int) -> Factorisation:
    """Lemmas 1 and 2 for the selected nodes of every node, shape (nodes, positives)."""
    count, positives = selected.shape
    start = np.random.default_rng(seed).standard_normal((count, dimensions))
    pairs = pair_matrix(selected)
    adjacency = undirected(pairs)
    found, taken = descend(averaged(pairs), start / np.sqrt(count), steps)
    degrees = adjacency.sum(axis=1)
    return Factorisation(
        nodes=count,
        positives=positives,
        dimensions=dimensions,
        least_degree=int(degrees.min()),
        largest_degree=int(degrees.max()),
        random=identities(selected, start),
        minimiser=identities(selected, found * np.sqrt(count)),
        descent=_judged(pairs, found, taken),
    )


def contrastive_loss(representations: Matrix, selected: NDArray[np.int64]) -> float:
    """Equation 5: nodes drawn uniformly, with a selected node, and with any node."""
    attraction = sum(
        float((representations * representations[column]).sum()) for column in selected.T
    ) / float(selected.size)
    repulsion = float(((representations.T @ representations) ** 2).sum()) / len(representations) ** 2
    return repulsion - 2 * attraction


def contrastive_loss_by_degree(representations: Matrix, adjacency: sparse.csr_array) -> float:
    """The loss that the proof of Lemma 1 passes through: an edge drawn uniformly, two nodes by degree."""
    probabilities = adjacency.sum(axis=1) / adjacency.sum()
    ends = adjacency.tocoo().coords
    attraction = float((representations[ends[0]] * representations[ends[1]]).sum()) / adjacency.nnz
    products = representations.T @ (probabilities[:, None] * representations)
    return float((products**2).sum() - 2 * attraction)


def factorisation_loss(matrix: sparse.csr_array, factors: Matrix) -> float:
    """||A - F F^T||^2 without the constant ||A||^2, and without the matrix F F^T."""
    return float(((factors.T @ factors) ** 2).sum() - 2 * (factors * (matrix @ factors)).sum())


def averaged(pairs: sparse.csr_array) -> sparse.csr_array:
    """(P + P^T) / (2 K_pos): the matrix that the contrastive loss factorises, whatever the degrees.

    With F = Z / sqrt(N), the first term of the loss is -2 tr(F^T P F) / K_pos, which does not change when P
    is replaced by its average with P^T; the second is ||F F^T||^2.
    """
    return sparse.csr_array((pairs + pairs.T) / (2 * pairs[[0]].sum()))


def identities(selected: NDArray[np.int64], representations: Matrix) -> Identities:
    """Lemma 1 for given representations, shape (nodes, dimensions)."""
    pairs = pair_matrix(selected)
    adjacency = undirected(pairs)
    normalised, average = symmetric_normalised(adjacency), averaged(pairs)
    probabilities = np.asarray(adjacency.sum(axis=1) / adjacency.sum())
    factors = representations / np.sqrt(len(representations))
    weighted = representations * np.sqrt(probabilities)[:, None]
    loss = contrastive_loss(representations, selected)
    size = float(((factors.T @ factors) ** 2).sum()) + abs(loss)
    by_degree = contrastive_loss_by_degree(representations, adjacency)
    return Identities(
        printed=(factorisation_loss(normalised, factors) - loss) / size,
        predicted=float(-2 * (factors * ((normalised - average) @ factors)).sum()) / size,
        by_degree=(factorisation_loss(normalised, weighted) - by_degree) / size,
        averaged=(factorisation_loss(average, factors) - loss) / size,
    )


def descend(matrix: sparse.csr_array, start: Matrix, steps: int) -> tuple[Matrix, int]:
    """A minimiser of the factorisation loss by gradient steps (L-BFGS), and their number."""

    def loss_and_gradient(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        factors = flat.reshape(start.shape)
        image, gram = matrix @ factors, factors.T @ factors
        loss = float((gram**2).sum() - 2 * (factors * image).sum())
        return loss, np.asarray(4 * (factors @ gram - image)).ravel()

    limits = {"maxiter": steps, "maxfun": 2 * steps, "maxcor": 20, "ftol": 0, "gtol": 1e-9}
    found = minimize(loss_and_gradient, start.ravel(), jac=True, method="L-BFGS-B", options=limits)
    return found.x.reshape(start.shape), int(found.nit)


def _judged(pairs: sparse.csr_array, found: Matrix, steps: int) -> Descent:
    average = averaged(pairs)
    values, vectors = _leading(average, found.shape[1] + 1)
    printed = leading(undirected(pairs), found.shape[1]).vectors
    least = -float((np.maximum(values[:-1], 0) ** 2).sum())
    return Descent(
        excess=(factorisation_loss(average, found) - least) / -least,
        angle=float(np.degrees(subspace_angles(found, vectors[:, :-1]).max())),
        printed_angle=float(np.degrees(subspace_angles(found, printed).max())),
        eigengap=float(values[-2] - values[-1]),
        steps=steps,
    )


def _leading(matrix: sparse.csr_array, count: int) -> tuple[NDArray[np.float64], Matrix]:
    """Largest eigenvalues in descending order, and their eigenvectors as columns."""
    if matrix.shape[0] <= max(_DENSE_NODES, 2 * count):
        values, vectors = np.linalg.eigh(matrix.toarray())
    else:
        start = np.random.default_rng(0).standard_normal(matrix.shape[0])
        values, vectors = eigsh(matrix, k=count, which="LA", v0=start, tol=1e-9)
    order = np.argsort(-values)[:count]
    return values[order], vectors[:, order]
