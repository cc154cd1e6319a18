"""Methods against a reference, paired over graphs: differences, intervals, tests, ranks, improvability."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean, pstdev
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from spgcl.experiments.figures import new_figure
from spgcl.experiments.render import Cell, Strong, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Test scores in percent of every retraining, by row and graph.
Cells = Mapping[str, Mapping[str, Sequence[float]]]
Values = NDArray[np.float64]

RESAMPLES = 10_000
LEVEL = 0.05

# The axis of the figure is linear up to so many points, and logarithmic beyond.
_LINEAR = 4
_TICKS = (-40, -20, -10, -4, -2, 0, 2, 4, 10, 20, 40)


@dataclass(frozen=True)
class Comparison:
    """A row against the reference, over all graphs.

    Attributes:
        difference: Mean over graphs of the difference of mean scores, in points.
        interval: Its 95 % interval, see `bootstrap`.
        adjusted: Its p-value by `sign_flips`, after Holm's correction over all rows.
        ahead: On how many graphs the row is ahead.
        rank: Mean rank over graphs, among all rows and the reference.
        improvability: Mean of 1 - best error / error over graphs, in percent.
        deviation: Standard deviation over retrainings, a mean over graphs with several; None without.
    """

    row: str
    difference: float
    interval: tuple[float, float]
    adjusted: float
    ahead: int
    rank: float
    improvability: float
    deviation: float | None

    @property
    def differs(self) -> bool:
        """Whether the difference would be as large by chance less often than one time in twenty."""
        return self.adjusted < LEVEL


def compare(cells: Cells, reference: str) -> list[Comparison]:
    """All rows against the reference, on the graphs that all rows have, the largest difference first.

    The reference is among them, with a difference of 0 to itself.
    """
    graphs = shared_graphs(cells)
    rows = [row for row in cells if row != reference]
    means = np.array([[fmean(cells[row][graph]) for graph in graphs] for row in (reference, *rows)])
    differences = means[1:] - means[0]
    adjusted = holm([sign_flips(each) for each in differences])
    ranks = rankdata(-means, axis=0).mean(axis=1)
    improvable = improvability(means).mean(axis=1)
    found = []
    for index, row in enumerate((reference, *rows)):
        pairs = [(cells[row][graph], cells[reference][graph]) for graph in graphs]
        known = row != reference
        found.append(
            Comparison(
                row=row,
                difference=float(differences[index - 1].mean()) if known else 0.0,
                interval=bootstrap(pairs) if known else (0.0, 0.0),
                adjusted=adjusted[index - 1] if known else 1.0,
                ahead=int((differences[index - 1] > 0).sum()) if known else 0,
                rank=float(ranks[index]),
                improvability=100 * float(improvable[index]),
                deviation=_deviation([cells[row][graph] for graph in graphs]),
            )
        )
    return sorted(found, key=lambda each: -each.difference)


def shared_graphs(cells: Cells) -> list[str]:
    """The graphs that every row has, in the order of the first."""
    first, *others = cells.values()
    return [graph for graph in first if all(graph in other for other in others)]


def bootstrap(
    pairs: Sequence[tuple[Sequence[float], Sequence[float]]], *, resamples: int = RESAMPLES, seed: int = 0
) -> tuple[float, float]:
    """The 95 % percentile interval of the mean difference, over graphs and retrainings.

    Args:
        pairs: By graph, the scores of a row and those of the reference, one per retraining.
        resamples: Each draws as many graphs as there are, with replacement, and for every drawn graph as many
            retrainings of both as there are.
        seed: Decides the draws.
    """
    generator = np.random.default_rng(seed)
    drawn = generator.integers(len(pairs), size=(resamples, len(pairs)))
    differences = np.empty(drawn.shape)
    for graph, scores in enumerate(pairs):
        here = drawn == graph
        own, other = (_resampled_means(np.asarray(each), int(here.sum()), generator) for each in scores)
        differences[here] = own - other
    low, high = np.quantile(differences.mean(axis=1), [LEVEL / 2, 1 - LEVEL / 2])
    return float(low), float(high)


def _resampled_means(scores: Values, count: int, generator: np.random.Generator) -> Values:
    chosen = generator.integers(len(scores), size=(count, len(scores)))
    means: Values = scores[chosen].mean(axis=1)
    return means


def sign_flips(differences: Values) -> float:
    """The fraction of all ways to flip signs of differences whose mean is at least as far from 0.

    This is the exact p-value if a difference is as likely as its negative: of n graphs at least 2 / 2^n.
    """
    signs = np.array(list(product((1.0, -1.0), repeat=len(differences))))
    means = np.abs(signs @ differences)
    # The observed sum is one of them, but may be rounded otherwise.
    return float((means >= means[0] - 1e-9).mean())


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values after Holm's correction: of m, the k-th smallest times m - k + 1, and never falling."""
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for position, index in enumerate(np.argsort(p_values, kind="stable").tolist()):
        largest = max(largest, min(1.0, (len(p_values) - position) * p_values[index]))
        adjusted[index] = largest
    return adjusted


def improvability(scores: Values) -> Values:
    """1 - best error / error of scores in percent, shape (rows, graphs); 0 for the best row of a graph."""
    errors = 100 - scores
    best = np.broadcast_to(errors.min(axis=0), errors.shape)
    ratios: Values = np.divide(best, errors, out=np.ones_like(errors), where=errors > 0)
    return 1 - ratios


def _deviation(scores: Sequence[Sequence[float]]) -> float | None:
    several = [pstdev(each) for each in scores if len(each) > 1]
    return fmean(several) if several else None


def comparison_table(found: Sequence[Comparison], reference: str, title: str) -> Table:
    """Rows by what `compare` finds."""
    rows: list[list[Cell]] = []
    for each in found:
        low, high = each.interval
        ours = each.row != reference
        gap = [f"{each.difference:+.1f}", f"{low:+.1f} to {high:+.1f}"]
        gap += [f"{each.adjusted:.3f}", str(each.ahead)]
        rows.append(
            [
                Strong(each.row) if ours and each.differs else each.row,
                *(gap if ours else ["-"] * len(gap)),
                f"{each.rank:.1f}",
                f"{each.improvability:.1f}",
                "-" if each.deviation is None else f"{each.deviation:.2f}",
            ]
        )
    columns = ["method", "points ahead", "95 % interval", "p", "graphs ahead", "mean rank"]
    return Table(title, [*columns, "improvability %", "± retrainings"], rows, [summary(found, reference)])


def summary(found: Sequence[Comparison], reference: str) -> str:
    """How many rows differ from the reference, and how large a difference has to be for that."""
    others = [each for each in found if each.row != reference]
    marked = [abs(each.difference) for each in others if each.differs]
    unmarked = [abs(each.difference) for each in others if not each.differs]
    ahead = sum(each.differs and each.difference > 0 for each in others)
    counts = (
        f"After Holm's correction {ahead} of {len(others)} are ahead of {reference}, "
        f"{len(marked) - ahead} behind"
    )
    sizes = [f"the least difference in bold is {min(marked):.1f} points"] if marked else []
    sizes += [f"the largest that is not, {max(unmarked):.1f} points"] if unmarked else []
    return f"{counts}; {', '.join(sizes)}."


def described(found: Mapping[str, Sequence[Comparison]]) -> str:
    """The numbers of `comparison_figure` in words."""
    return "; ".join(
        f"{title}: "
        + ", ".join(
            f"{each.row} {each.difference:+.1f} ({each.interval[0]:+.1f} to {each.interval[1]:+.1f}"
            f"{', differs' if each.differs else ''})"
            for each in comparisons
        )
        for title, comparisons in found.items()
    )


def comparison_figure(found: Mapping[str, Sequence[Comparison]], reference: str) -> "Figure":
    """A panel per protocol: every row's points ahead of the reference with its interval.

    Rows that differ after Holm's correction have filled marks.
    """
    longest = max(len(comparisons) for comparisons in found.values())
    figure, panels = new_figure(len(found), height=0.24 * longest + 0.9, width=4.6 * len(found))
    for panel, (title, comparisons) in zip(panels, found.items(), strict=True):
        shown = [each for each in reversed(comparisons) if each.row != reference]
        panel.axvline(0, color="0.6", linewidth=1)
        for height, each in enumerate(shown):
            panel.plot(each.interval, (height, height), color="black", linewidth=1)
            face = "black" if each.differs else "white"
            panel.plot(each.difference, height, "o", color="black", markerfacecolor=face, markersize=5)
        panel.set_yticks(range(len(shown)), [each.row for each in shown])
        panel.set(title=title, xlabel=f"points ahead of {reference}")
        # Most rows are within a few points, some far behind.
        panel.set_xscale("symlog", linthresh=_LINEAR)
        ends = [end for each in shown for end in each.interval]
        ticks = [tick for tick in _TICKS if min(ends) <= tick <= max(ends)]
        panel.set_xticks(ticks, [f"{tick:+d}" if tick else "0" for tick in ticks])
        panel.minorticks_off()
        panel.grid(visible=False, axis="y")
        panel.grid(axis="x", color="0.9", linewidth=0.8)
    return figure
