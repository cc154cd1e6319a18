"""Theorem 1: how far representations are from their expectations, beside the bounds, as degrees grow."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spgcl.evaluation.checks import checked_classes
from spgcl.evaluation.statistics import class_mixing
from spgcl.graph import Graph
from spgcl.theory.assumption import fitted
from spgcl.theory.deviations import Level, drawn_level, own_levels, require_delta
from spgcl.theory.layer import random_layer

Matrix = NDArray[np.float64]

# The numbers of neighbours, the node itself among them, at which nodes are drawn.
DEGREES = (2, 4, 8, 16, 32, 64, 128, 256)


@dataclass(frozen=True)
class Concentration:
    """Theorem 1 on a graph, under Assumption 1 with the graph's own classes, features and mixing.

    Attributes:
        between_degrees: Largest distance between expectations of one class at the least and the largest
            degree drawn; Theorem 1 says 0, which holds at equal degrees only.
        between_classes: The least distance between expectations of two classes at the largest degree drawn.
        class_offset: Largest distance of the mean of Z_i - E Z_i over a class of the graph from 0.
        rate: Power of the degree by which deviations fall; the bound falls by -1/2.
        product_rate: The same for inner products; the printed bound falls by -1.
        drawn: Nodes drawn by Assumption 1, with exactly the degree of the level.
        graph: The graph's own nodes.
        within: Fraction of all the graph's nodes within the bound.
        product_within: Fraction of pairs of the graph's nodes within the bound; None without such pairs.
    """

    nodes: int
    width: int
    delta: float
    radius: float
    between_degrees: float
    between_classes: float
    class_offset: float
    rate: float | None
    product_rate: float | None
    drawn: tuple[Level, ...]
    graph: tuple[Level, ...]
    within: float
    product_within: float | None

    @property
    def holds(self) -> bool:
        """Whether enough drawn nodes and pairs are within the bounds at every degree."""
        fractions = [value for level in self.drawn for value in (level.within, level.product_within)]
        return all(value is not None and value >= 1 - self.delta for value in fractions)

    @property
    def printed_fails(self) -> list[int]:
        """Degrees at which too few drawn pairs are within the printed bound on inner products."""
        return [level.degree for level in self.drawn if (level.printed_within or 0) < 1 - self.delta]

    @property
    def verdict(self) -> list[str]:
        """What the numbers say, in sentences."""
        drawn = "At every degree" if self.holds else "Not at every degree"
        found = [
            f"{drawn} at least {100 * (1 - self.delta):g}% of drawn nodes and pairs are within the bounds.",
            f"Of the graph's own nodes, {100 * self.within:.4g}% are.",
        ]
        if self.rate is not None and self.product_rate is not None:
            found.append(
                f"Deviations fall with the degree to the power {self.rate:.2f}, those of inner products to "
                f"the power {self.product_rate:.2f}; the printed bounds fall to the powers -0.5 and -1."
            )
        if self.printed_fails:
            degrees = ", ".join(map(str, self.printed_fails))
            found.append(f"The bound on inner products fails as printed at degree {degrees}.")
        return found

    def as_record(self) -> dict[str, Any]:
        """Plain values."""
        extra = {"holds": self.holds, "printed_fails": self.printed_fails, "verdict": self.verdict}
        return {**asdict(self), **extra}


def concentration(
    graph: Graph, labels: Any, *, delta: float = 0.05, width: int = 16, draws: int = 500, seed: int = 0
) -> Concentration:
    """Theorem 1 on a graph: deviations of the outputs of a random layer against their bounds.

    Expectations are means over nodes drawn by Assumption 1: a node's own features are those of a random node
    of its class; its neighbours' classes are drawn by the class's mixing in the graph.

    Args:
        graph: The original graph.
        labels: One class per node; nodes without a class are not compared.
        delta: Probability with which a bound may fail.
        width: Columns of W, K in the paper.
        draws: Nodes drawn per class and degree.
        seed: Decides the weights and the draws.
    """
    values, num_classes = checked_classes(labels, graph.num_nodes)
    require_delta(delta)
    layer = random_layer(graph, width, seed)
    model = fitted(layer, class_mixing(graph, values), values)
    generator = np.random.default_rng(seed)
    expected = np.zeros((num_classes, layer.degrees.max() + 1, width))
    drawn = {}
    for label in np.unique(values[values >= 0]).tolist():
        reached = np.unique(layer.degrees[values == label])
        for degree, outputs in model.running(label, np.union1d(reached, DEGREES), draws, generator):
            if degree < expected.shape[1]:
                expected[label, degree] = outputs.mean(axis=0)
            if degree in DEGREES:
                drawn[label, degree] = outputs
    levels = [drawn_level(layer, drawn, degree, delta, generator) for degree in DEGREES]
    nodes = np.flatnonzero(values >= 0)
    means = expected[values[nodes], layer.degrees[nodes]]
    own, within, product_within = own_levels(layer, nodes, means, delta, generator)
    offsets = [
        np.abs((layer.outputs[nodes] - means)[values[nodes] == label].mean(axis=0)).max()
        for label in np.unique(values[nodes])
    ]
    return Concentration(
        nodes=len(nodes),
        width=width,
        delta=delta,
        radius=layer.radius,
        **_expectations(drawn),
        class_offset=float(max(offsets)),
        rate=_rate([level.deviation for level in levels]),
        product_rate=_rate([level.product_deviation or 0.0 for level in levels]),
        drawn=tuple(levels),
        graph=own,
        within=within,
        product_within=product_within,
    )


def _expectations(drawn: dict[tuple[int, int], Matrix]) -> dict[str, float]:
    """Distances between expectations, by their names in `Concentration`."""
    means = {key: outputs.mean(axis=0) for key, outputs in drawn.items()}
    labels = sorted({label for label, _ in means})
    least, most = DEGREES[0], DEGREES[-1]
    return {
        "between_degrees": max(
            float(np.abs(means[label, least] - means[label, most]).max()) for label in labels
        ),
        "between_classes": min(
            float(np.abs(means[one, most] - means[other, most]).max())
            for one in labels
            for other in labels
            if one < other
        ),
    }


def _rate(deviations: list[float]) -> float | None:
    """Slope of the logarithm of deviations over that of the degrees; None if one is 0."""
    if not all(deviations):
        return None
    return float(np.polyfit(np.log(DEGREES), np.log(deviations), 1)[0])
