"""Theorem 2: how much larger inner products are within classes than between them, beside 1 - phi."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spgcl.errors import InputError
from spgcl.graph import Graph
from spgcl.theory.spectrum import leading
from spgcl.theory.transformed import disagreement, symmetric_normalised, transform_labelled


@dataclass(frozen=True)
class Pairs:
    """Inner products of representations over ordered pairs of nodes, drawn in one way.

    Attributes:
        same: Mean over pairs of one class.
        other: Mean over pairs of two classes.
        same_mass: Part of the mean over all pairs that pairs of one class contribute.
        other_mass: Part that pairs of two classes contribute.
    """

    same: float
    other: float
    same_mass: float
    other_mass: float

    @property
    def gap(self) -> float:
        """The left side of Theorem 2: the difference of the two means."""
        return self.same - self.other

    @property
    def difference(self) -> float:
        """What the printed proof ends with: the difference of the two parts."""
        return self.same_mass - self.other_mass


@dataclass(frozen=True)
class Similarity:
    """Both sides of Theorem 2 on a graph.

    Attributes:
        phi: Fraction of the transformed graph's edges that join two classes.
        phi_printed: The mean of A_ij 1[y_i != y_j] over all pairs of nodes.
        loss_fraction: Factorisation loss of the minimiser over its loss at 0; the theorem assumes 0.
        uniform: Pairs of nodes drawn uniformly, as printed.
        by_degree: Pairs of nodes drawn by their degree in the transformed graph.
        exact: The pairs drawn by degree if the loss were 0.
    """

    nodes: int
    positives: int
    dimensions: int
    phi: float
    phi_printed: float
    loss_fraction: float
    uniform: Pairs
    by_degree: Pairs
    exact: Pairs

    @property
    def by_drawing(self) -> dict[str, Pairs]:
        """The pairs by how they are drawn, in words."""
        return {
            "drawn uniformly": self.uniform,
            "drawn by degree": self.by_degree,
            "by degree, at a loss of 0": self.exact,
        }

    @property
    def holds(self) -> bool:
        """Whether the gap over uniformly drawn pairs is at least 1 - phi."""
        return self.uniform.gap >= 1 - self.phi

    @property
    def verdict(self) -> list[str]:
        """What the numbers say, in sentences."""
        relation = "at least" if self.holds else "below"
        return [
            f"The gap {self.uniform.gap:.3g} is {relation} 1 - phi = {1 - self.phi:.3g}.",
            "The difference that the proof ends with, weighted by degree, is "
            f"{self.by_degree.difference:.3g}; at a loss of 0 it is 1 - 2 phi = {1 - 2 * self.phi:.3g}.",
            "The theorem assumes that the loss is 0. Here "
            f"{100 * self.loss_fraction:.0f}% of the loss of Z = 0 remains; it cannot vanish, as a graph "
            "without self-loops has negative eigenvalues.",
        ]

    def as_record(self) -> dict[str, Any]:
        """Plain values."""
        record = asdict(self)
        for name in ("uniform", "by_degree", "exact"):
            pairs: Pairs = getattr(self, name)
            record[name] |= {"gap": pairs.gap, "difference": pairs.difference}
        return {**record, "holds": self.holds, "verdict": self.verdict}


def similarity(
    graph: Graph, labels: Any, *, positives: int = 5, dimensions: int = 32, seed: int = 0
) -> Similarity:
    """Theorem 2 on a graph: inner products of the minimiser within and between classes.

    Args:
        graph: The original graph.
        labels: One class per node; nodes without a class are left out of the transformed graph.
        positives: How many nodes each node selects, K_pos in the paper.
        dimensions: Columns of the minimiser, K in the paper.
        seed: Decides the weights of the layer.
    """
    transformed, kept, _ = transform_labelled(graph, labels, positives=positives, seed=seed)
    if len(np.unique(kept)) < 2:
        raise InputError("the nodes that can be compared have one class only; two are needed")
    adjacency = transformed.adjacency
    spectrum = leading(adjacency, dimensions)
    used = np.maximum(spectrum.values, 0)
    degrees = np.asarray(adjacency.sum(axis=1))
    probabilities = degrees / degrees.sum()
    representations = spectrum.vectors * np.sqrt(used) / np.sqrt(probabilities)[:, None]
    matrix = symmetric_normalised(adjacency)
    phi = disagreement(adjacency, kept)
    total = float((matrix.data**2).sum())
    return Similarity(
        nodes=transformed.num_nodes,
        positives=positives,
        dimensions=dimensions,
        phi=phi,
        phi_printed=phi * adjacency.nnz / len(kept) ** 2,
        loss_fraction=float(1 - (used**2).sum() / total),
        uniform=compared(representations, kept, np.full(len(kept), 1 / len(kept))),
        by_degree=compared(representations, kept, probabilities),
        exact=_parted(1 - phi, phi, kept, probabilities),
    )


def compared(
    representations: NDArray[np.float64], labels: NDArray[np.int64], probabilities: NDArray[np.float64]
) -> Pairs:
    """Inner products over ordered pairs whose ends are drawn independently with the given probabilities.

    The sum over pairs of one class is the squared length of the class's sum, so no pair is visited.
    """
    indicator = np.eye(int(labels.max()) + 1)[labels] * probabilities[:, None]
    sums = indicator.T @ representations
    same = float((sums**2).sum())
    return _parted(same, float((sums.sum(axis=0) ** 2).sum()) - same, labels, probabilities)


def _parted(
    same: float, other: float, labels: NDArray[np.int64], probabilities: NDArray[np.float64]
) -> Pairs:
    alike = float((np.bincount(labels, weights=probabilities) ** 2).sum())
    return Pairs(same / alike, other / (1 - alike), same, other)
