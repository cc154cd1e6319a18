"""Theorem 3: the error of the best linear classifier on the minimiser, and its bound, term by term."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spgcl.errors import InputError
from spgcl.graph import Graph
from spgcl.theory.deviations import require_delta
from spgcl.theory.layer import SLOPE, TAU, Layer
from spgcl.theory.spectrum import leading
from spgcl.theory.transformed import disagreement, transform_labelled

# A Laplacian eigenvalue below this is 0 up to rounding.
_ZERO = 1e-9


@dataclass(frozen=True)
class Bound:
    """The terms of Theorem 3 on a graph, and what was measured.

    Attributes:
        phi: Fraction of the transformed graph's edges that join two classes.
        eigenvalue: lambda_{K+1} of the transformed graph's normalised Laplacian.
        c_degree: Mean of D_ii^-(2 tau - 1) over the nodes of the original graph, self-loops counted.
        weight_norms: Sum of the squared lengths of the columns of W.
        spectral_bound: phi / lambda_{K+1}, the proved part; None if lambda_{K+1} is 0.
        degree_term: The second term as printed; None if lambda_{K+1} is 0.
        bound: Their sum; None if lambda_{K+1} is 0.
        error: Squared error of the best linear classifier, nodes weighted by their degree, as proved.
        uniform_error: The same with all nodes equal, as printed.
        misclassified: Fraction of the nodes that the first classifier puts into a wrong class.
        classifier_norm: Frobenius norm of the first classifier; None if 1 - lambda_K is not above 0.
        norm_bound: 1 / (1 - lambda_K), which the theorem states for it.
    """

    nodes: int
    positives: int
    dimensions: int
    components: int
    phi: float
    eigenvalue: float
    c_degree: float
    weight_norms: float
    radius: float
    slope: float
    tau: int
    delta: float
    spectral_bound: float | None
    degree_term: float | None
    bound: float | None
    error: float
    uniform_error: float
    misclassified: float
    classifier_norm: float | None
    norm_bound: float | None

    @property
    def compared(self) -> dict[str, float | None]:
        """The parts of the bound and the errors, in words."""
        return {
            "phi / lambda_K+1": self.spectral_bound,
            "second term as printed": self.degree_term,
            "bound as printed": self.bound,
            "measured error, by degree": self.error,
            "measured error, uniform": self.uniform_error,
        }

    @property
    def holds(self) -> bool:
        """Whether the measured error is within the proved part of the bound, up to rounding."""
        return self.spectral_bound is None or self.error <= self.spectral_bound + _ZERO

    @property
    def verdict(self) -> list[str]:
        """What the numbers say, in sentences."""
        if self.spectral_bound is None or self.bound is None:
            return [
                f"The bound is vacuous: the transformed graph has {self.components} parts for "
                f"{self.dimensions} dimensions, so lambda_K+1 is 0 and the bound infinite."
            ]
        return [
            _judged("phi / lambda_K+1", self.spectral_bound),
            _judged("The bound as printed", self.bound),
            f"The measured error {self.error:.3g} is {'within' if self.holds else 'above'} phi / lambda_K+1.",
        ]

    def as_record(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "holds": self.holds, "verdict": self.verdict}


def _judged(name: str, value: float) -> str:
    if value > 1:
        return f"{name} is {value:.3g}, which is vacuous: answering 0 for every class has the error 1."
    return f"{name} is {value:.3g}; answering 0 for every class has the error 1."


def bound(
    graph: Graph, labels: Any, *, positives: int = 5, dimensions: int = 32, delta: float = 0.05, seed: int = 0
) -> Bound:
    """Theorem 3 on a graph: its bound, and the error of the best linear classifier.

    Args:
        graph: The original graph.
        labels: One class per node; nodes without a class are left out of the transformed graph.
        positives: How many nodes each node selects, K_pos in the paper.
        dimensions: Columns of the minimiser, K in the paper.
        delta: Probability with which the printed bound may fail.
        seed: Decides the weights of the layer.
    """
    require_delta(delta)
    transformed, kept, num_classes = transform_labelled(graph, labels, positives=positives, seed=seed)
    adjacency, layer = transformed.adjacency, transformed.layer
    if not 1 <= dimensions < transformed.num_nodes:
        raise InputError(
            f"dimensions is {dimensions}; {transformed.num_nodes} nodes need 1 to {transformed.num_nodes - 1}"
        )
    spectrum = leading(adjacency, dimensions + 1)
    # Z*: where 1 - lambda_k is negative, the factorisation leaves the dimension empty.
    used = spectrum.values[:dimensions] > _ZERO
    minimiser = spectrum.vectors[:, :dimensions][:, used] * np.sqrt(spectrum.values[:dimensions][used])
    degrees = np.asarray(adjacency.sum(axis=1))
    measured = _best_classifier(minimiser, degrees, np.eye(num_classes)[kept])
    terms = _terms(layer, disagreement(adjacency, kept), float(1 - spectrum.values[dimensions]), delta)
    complete = bool(used.all())
    return Bound(
        nodes=transformed.num_nodes,
        positives=positives,
        dimensions=dimensions,
        components=spectrum.components,
        delta=delta,
        **terms,
        **(measured | {"classifier_norm": measured["classifier_norm"] if complete else None}),
        norm_bound=float(1 / spectrum.values[dimensions - 1]) if complete else None,
    )


def _terms(layer: Layer, phi: float, eigenvalue: float, delta: float) -> dict[str, Any]:
    """The terms of the bound, by their names in `Bound`."""
    c_degree = float(np.mean(layer.degrees ** -(2.0 * TAU - 1)))
    weight_norms = float((layer.weight_norms**2).sum())
    spectral_bound = degree_term = None
    if eigenvalue > _ZERO:
        spectral_bound = phi / eigenvalue
        scale = (SLOPE * layer.radius) ** 2 * c_degree * weight_norms
        degree_term = float(scale * np.sqrt(2 * np.log(2 / delta) / eigenvalue**2))
    return {
        "phi": phi,
        "eigenvalue": max(eigenvalue, 0.0),
        "c_degree": c_degree,
        "weight_norms": weight_norms,
        "radius": layer.radius,
        "slope": SLOPE,
        "tau": TAU,
        "spectral_bound": spectral_bound,
        "degree_term": degree_term,
        "bound": None if spectral_bound is None or degree_term is None else spectral_bound + degree_term,
    }


def _best_classifier(
    minimiser: NDArray[np.float64], degrees: NDArray[np.float64], targets: NDArray[np.float64]
) -> dict[str, Any]:
    """Errors of the linear classifiers with the least squared error, by their names in `Bound`.

    With node probabilities w, the representations are Z_i = F_i / sqrt(w_i), so that the error over nodes
    drawn by w is the squared distance between sqrt(w) y and F B.
    """
    roots = np.sqrt(degrees / degrees.sum())[:, None]
    representations = minimiser / roots
    classifier = np.linalg.lstsq(minimiser, roots * targets, rcond=None)[0]
    predictions = representations @ classifier
    uniform = representations @ np.linalg.lstsq(representations, targets, rcond=None)[0]
    wrong = predictions.argmax(axis=1) != targets.argmax(axis=1)
    return {
        "error": float((((targets - predictions) * roots) ** 2).sum()),
        "uniform_error": float(((targets - uniform) ** 2).sum(axis=1).mean()),
        "misclassified": float(wrong.mean()),
        "classifier_norm": float(np.linalg.norm(classifier)),
    }
