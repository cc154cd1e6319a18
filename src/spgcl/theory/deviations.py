"""Deviations of representations from their expectations, and what bounds them, at one degree or a few."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spgcl.errors import InputError
from spgcl.theory.layer import SLOPE, TAU, Layer

Matrix = NDArray[np.float64]


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


def require_delta(delta: float) -> None:
    """Refuse what is no probability with which a bound may fail."""
    if not 0 < delta < 1:
        raise InputError(f"delta is {delta}; a probability between 0 and 1 is needed")


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


def drawn_level(
    layer: Layer,
    drawn: dict[tuple[int, int], Matrix],
    degree: int,
    delta: float,
    generator: np.random.Generator,
) -> Level:
    """Drawn nodes of all classes at one degree; `drawn` has their outputs by class and degree."""
    groups = [outputs for (_, at), outputs in drawn.items() if at == degree]
    outputs = np.concatenate(groups)
    means = np.concatenate([np.broadcast_to(group.mean(axis=0), group.shape) for group in groups])
    degrees = np.full(len(outputs), degree)
    order = generator.permutation(len(outputs))
    return level_of(layer, degrees, outputs, means, (order, np.roll(order, 1)), delta)


def own_levels(
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
        levels.append(level_of(layer, degrees, outputs, means, pairs, delta, chosen))
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


def level_of(
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
