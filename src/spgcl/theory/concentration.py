"""Theorem 1: how far representations are from their expectations, beside the bounds, as degrees grow."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spgcl.errors import InputError
from spgcl.evaluation.checks import checked_classes
from spgcl.evaluation.statistics import class_mixing
from spgcl.graph import Graph
from spgcl.theory.layer import SLOPE, TAU, Layer, random_layer

Matrix = NDArray[np.float64]

# The numbers of neighbours, the node itself among them, at which nodes are drawn.
DEGREES = (2, 4, 8, 16, 32, 64, 128, 256)


@dataclass(frozen=True)
class Level:
    """Nodes and pairs of nodes of one degree, or of degrees up to twice as large.

    Deviations are quantiles at 1 - delta, bounds are medians; every fraction has to be at least 1 - delta.

    Attributes:
        degree: D_ii, with the node itself; the smallest of the level.
        deviation: ||Z_i - E Z_i||_inf.
        bound: What Theorem 1 bounds it by.
        within: Fraction of the nodes within the bound.
        product_deviation: |Z_i . Z_j - E[Z_i . Z_j]| for nodes without a common neighbour.
        product_bound: What bounded differences bound it by, see `product_bounds`.
        product_within: Fraction of the pairs within that.
        printed_bound: What the theorem bounds it by as printed.
        printed_within: Fraction of the pairs within that.
    """

    degree: int
    nodes: int
    pairs: int
    deviation: float
    bound: float
    within: float
    product_deviation: float | None
    product_bound: float | None
    product_within: float | None
    printed_bound: float | None
    printed_within: float | None


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
    graph: Graph,
    labels: Any,
    *,
    delta: float = 0.05,
    width: int = 16,
    draws: int = 500,
    seed: int = 0,
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
    if not 0 < delta < 1:
        raise InputError(f"delta is {delta}; a probability between 0 and 1 is needed")
    layer = random_layer(graph, width, seed)
    model = fitted(layer, class_mixing(graph, values), values)
    generator = np.random.default_rng(seed)
    expected = np.zeros((num_classes, layer.degrees.max() + 1, width))
    drawn = {}
    for label in np.unique(values[values >= 0]).tolist():
        own = np.unique(layer.degrees[values == label])
        for degree, outputs in model.running(label, np.union1d(own, DEGREES), draws, generator):
            if degree < expected.shape[1]:
                expected[label, degree] = outputs.mean(axis=0)
            if degree in DEGREES:
                drawn[label, degree] = outputs
    levels = [_drawn_level(layer, drawn, degree, delta, generator) for degree in DEGREES]
    nodes = np.flatnonzero(values >= 0)
    means = expected[values[nodes], layer.degrees[nodes]]
    own_levels, within, product_within = _own_levels(layer, nodes, means, delta, generator)
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
        graph=own_levels,
        within=within,
        product_within=product_within,
    )


@dataclass(frozen=True, eq=False)
class Assumption:
    """Assumption 1 for a graph: which nodes' features a node and its neighbours have.

    Attributes:
        members: Labelled nodes, class by class.
        offsets: Where each class begins in `members`, and the end.
        mixing: P_y: the probabilities of a neighbour's class, a row per class.
        projected: x^T W of every node.
    """

    members: NDArray[np.int64]
    offsets: NDArray[np.int64]
    mixing: Matrix
    projected: Matrix

    def draw(self, classes: NDArray[np.int64], generator: np.random.Generator) -> Matrix:
        """Projected features of a random node of each class, shape (classes, width)."""
        sizes = np.diff(self.offsets)[classes]
        rows = self.members[self.offsets[classes] + generator.integers(sizes)]
        return np.asarray(self.projected[rows])

    def running(
        self, label: int, degrees: Iterable[int], draws: int, generator: np.random.Generator
    ) -> Iterator[tuple[int, Matrix]]:
        """Z of `draws` nodes of one class at ascending degrees, while their neighbours become more.

        Nodes are independent of each other; the same node at two degrees is not.
        """
        total, reached = self.draw(np.full(draws, label), generator), 1
        for degree in degrees:
            for _ in range(degree - reached):
                classes = generator.choice(len(self.mixing), size=draws, p=self.mixing[label])
                total = total + self.draw(classes, generator)
            reached = int(degree)
            yield reached, np.maximum(total / reached, 0)


def fitted(layer: Layer, mixing: Matrix, labels: NDArray[np.int64]) -> Assumption:
    """Assumption 1 with a graph's features and mixing.

    A class without labelled neighbours gets neighbours of all classes.
    """
    members = np.argsort(labels, kind="stable")[np.count_nonzero(labels < 0) :]
    counts = np.bincount(labels[members], minlength=len(mixing))
    lonely = mixing.sum(axis=1, keepdims=True) == 0
    return Assumption(
        members=members,
        offsets=np.concatenate([[0], np.cumsum(counts)]),
        mixing=np.where(lonely, counts / counts.sum(), mixing),
        projected=layer.projected,
    )


def node_bounds(layer: Layer, degrees: NDArray[Any], delta: float) -> Matrix:
    """Equation 2: c R max_k ||w_k|| sqrt(2 ln(2 K / delta) / D^(2 tau - 1))."""
    logarithm = np.log(2 * len(layer.weight_norms) / delta)
    scale = SLOPE * layer.radius * layer.weight_norms.max()
    return np.asarray(scale * np.sqrt(2 * logarithm / degrees ** (2.0 * TAU - 1)))


def printed_product_bounds(layer: Layer, one: NDArray[Any], other: NDArray[Any], delta: float) -> Matrix:
    """Equation 3: c^2 R^2 sum_k ||w_k||^2 sqrt(2 ln(2 / delta) / (D_ii D_jj)^(2 tau - 1))."""
    power = (one.astype(np.float64) * other) ** (2 * TAU - 1)
    return np.asarray(_product_scale(layer) * np.sqrt(2 * np.log(2 / delta) / power))


def product_bounds(layer: Layer, one: NDArray[Any], other: NDArray[Any], delta: float) -> Matrix:
    """What bounded differences give for nodes without a common neighbour: the sum of 1 / D, not the product.

    Another neighbour of node i changes Z_i . Z_j by at most 2 S / D_ii with S = c^2 R^2 sum_k ||w_k||^2, and
    one of node j by at most 2 S / D_jj. McDiarmid's inequality sums the squares of these changes.
    """
    return np.asarray(_product_scale(layer) * np.sqrt(2 * np.log(2 / delta) * (1 / one + 1 / other)))


def _product_scale(layer: Layer) -> float:
    return float((SLOPE * layer.radius) ** 2 * (layer.weight_norms**2).sum())


def _drawn_level(
    layer: Layer,
    drawn: dict[tuple[int, int], Matrix],
    degree: int,
    delta: float,
    generator: np.random.Generator,
) -> Level:
    groups = [outputs for (_, at), outputs in drawn.items() if at == degree]
    outputs = np.concatenate(groups)
    means = np.concatenate([np.broadcast_to(group.mean(axis=0), group.shape) for group in groups])
    degrees = np.full(len(outputs), degree)
    order = generator.permutation(len(outputs))
    return _level(layer, degrees, outputs, means, (order, np.roll(order, 1)), delta)


def _own_levels(
    layer: Layer,
    nodes: NDArray[np.int64],
    means: Matrix,
    delta: float,
    generator: np.random.Generator,
) -> tuple[tuple[Level, ...], float, float | None]:
    """The graph's nodes by doubling degrees, and the fractions of all nodes and pairs within the bounds."""
    degrees, outputs = layer.degrees[nodes], layer.outputs[nodes]
    levels = []
    groups = np.floor(np.log2(degrees)).astype(np.int64)
    for group in np.unique(groups):
        chosen = np.flatnonzero(groups == group)
        pairs = _apart(layer, nodes, chosen, generator)
        levels.append(_level(layer, degrees, outputs, means, pairs, delta, chosen))
    nodes_within = sum(level.nodes * level.within for level in levels) / len(nodes)
    compared = sum(level.pairs for level in levels)
    inside = sum(level.pairs * (level.product_within or 0) for level in levels)
    return tuple(levels), float(nodes_within), float(inside / compared) if compared else None


def _apart(
    layer: Layer, nodes: NDArray[np.int64], chosen: NDArray[np.int64], generator: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Random pairs of the chosen positions whose nodes have no neighbour in common and no edge."""
    one = generator.permutation(chosen)
    other = np.roll(one, 1)
    rows = layer.adjacency[nodes]
    shared = rows[one].multiply(rows[other]).sum(axis=1)
    apart = (np.asarray(shared).ravel() == 0) & (one != other)
    return one[apart], other[apart]


def _level(
    layer: Layer,
    degrees: NDArray[np.int64],
    outputs: Matrix,
    means: Matrix,
    pairs: tuple[NDArray[np.int64], NDArray[np.int64]],
    delta: float,
    chosen: NDArray[np.int64] | slice = slice(None),
) -> Level:
    """The numbers of the chosen nodes and of the given pairs; every argument is by position."""
    deviations = np.abs(outputs[chosen] - means[chosen]).max(axis=1)
    bounds = node_bounds(layer, degrees[chosen], delta)
    one, other = pairs
    found = (outputs[one] * outputs[other]).sum(axis=1) - (means[one] * means[other]).sum(axis=1)
    ends = degrees[one], degrees[other]
    proved, printed = product_bounds(layer, *ends, delta), printed_product_bounds(layer, *ends, delta)
    return Level(
        degree=int(degrees[chosen].min()),
        nodes=len(deviations),
        pairs=len(one),
        deviation=float(np.quantile(deviations, 1 - delta)),
        bound=float(np.median(bounds)),
        within=float((deviations <= bounds).mean()),
        product_deviation=_quantile(np.abs(found), 1 - delta),
        product_bound=_quantile(proved, 0.5),
        product_within=_fraction(np.abs(found) <= proved),
        printed_bound=_quantile(printed, 0.5),
        printed_within=_fraction(np.abs(found) <= printed),
    )


def _quantile(values: Matrix, level: float) -> float | None:
    return float(np.quantile(values, level)) if len(values) else None


def _fraction(flags: NDArray[np.bool_]) -> float | None:
    return float(flags.mean()) if len(flags) else None


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
