"""Statistics against naive loops over every case."""

from fractions import Fraction
from itertools import product
from statistics import fmean

import numpy as np
import pytest

from spgcl.experiments.figures import write_figure
from spgcl.experiments.render import Strong
from spgcl.experiments.statistics import (
    bootstrap,
    compare,
    comparison_figure,
    comparison_table,
    described,
    holm,
    improvability,
    sign_flips,
)

CELLS = {
    "base": {"a": [50.0], "b": [60.0], "c": [70.0]},
    "up": {"a": [53.0, 55.0], "b": [60.5], "c": [72.0, 76.0, 74.0]},
    "down": {"a": [40.0], "b": [61.0], "c": [70.0], "d": [99.0]},
}


def exact_bootstrap(pairs):
    """The mean difference of every possible resample, each as often as it is drawn."""
    by_graph = [
        [
            fmean(own) - fmean(other)
            for own in product(first, repeat=len(first))
            for other in product(second, repeat=len(second))
        ]
        for first, second in pairs
    ]
    found = {}
    for graphs in product(by_graph, repeat=len(pairs)):
        for drawn in product(*graphs):
            value = round(fmean(drawn), 9)
            weight = 1
            for differences in graphs:
                weight /= len(differences)
            found[value] = found.get(value, 0) + weight / len(pairs) ** len(pairs)
    return sorted(found.items())


def quantile(distribution, level):
    """The values between which the distribution passes the level, a hundredth before and after it."""
    total, ends = 0, []
    for value, weight in distribution:
        before, total = total, total + weight
        if before <= level + 0.01 and total >= level - 0.01:
            ends.append(value)
    return min(ends) - 1e-6, max(ends) + 1e-6


def test_the_interval_is_that_of_all_resamples():
    pairs = [([3.0, 5.0], [1.0]), ([10.0], [4.0, 6.0]), ([1.0, 1.5], [2.0])]
    distribution = exact_bootstrap(pairs)
    assert sum(weight for _, weight in distribution) == pytest.approx(1)
    for end, level in zip(bootstrap(pairs), (0.025, 0.975), strict=True):
        low, high = quantile(distribution, level)
        assert low <= end <= high


def test_retrainings_widen_the_interval_of_one_graph():
    assert bootstrap([([1.0], [0.0])]) == (1.0, 1.0)
    low, high = bootstrap([([0.0, 2.0], [0.0])])
    assert (low, high) == (0.0, 2.0)


def test_sign_flips_counts_every_pattern():
    differences = [1.5, -0.5, 2.0, 0.25, 3.0]
    observed = abs(sum(differences))
    count = 0
    for pattern in range(2 ** len(differences)):
        total = sum(-each if pattern >> bit & 1 else each for bit, each in enumerate(differences))
        count += abs(total) >= observed - 1e-12
    assert sign_flips(np.array(differences)) == count / 2 ** len(differences)
    assert sign_flips(np.ones(6)) == 2 / 2**6
    assert sign_flips(np.zeros(4)) == 1


def naive_holm(p_values):
    adjusted = []
    for value in p_values:
        largest = Fraction(0)
        for rank, other in enumerate(sorted(p_values)):
            if other <= value:
                largest = max(largest, Fraction(other) * (len(p_values) - rank))
        adjusted.append(float(min(largest, 1)))
    return adjusted


def test_holm_is_its_definition():
    generator = np.random.default_rng(0)
    for count in (1, 2, 7):
        p_values = (generator.integers(1, 30, count) / 100).tolist()
        assert holm(p_values) == pytest.approx(naive_holm(p_values))
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


def test_improvability_is_what_the_best_row_does_not_get_wrong():
    scores = np.array([[90.0, 50.0, 100.0], [80.0, 75.0, 100.0]])
    naive = [
        [
            0.0 if column[row] == 100 else 1 - min(100 - each for each in column) / (100 - column[row])
            for column in scores.T
        ]
        for row in range(2)
    ]
    assert improvability(scores).tolist() == naive == [[0.0, 0.5, 0.0], [0.5, 0.0, 0.0]]


def test_rows_are_compared_on_the_graphs_that_all_have():
    up, base, down = compare(CELLS, "base")
    assert [each.row for each in (up, base, down)] == ["up", "base", "down"]
    assert up.difference == pytest.approx((4 + 0.5 + 4) / 3)
    assert (up.ahead, down.ahead) == (3, 1)
    # Ranks on the three graphs: equal rows share theirs.
    assert (up.rank, base.rank, down.rank) == pytest.approx((4 / 3, (2 + 3 + 2.5) / 3, (3 + 1 + 2.5) / 3))
    assert up.adjusted == pytest.approx(2 * 2 / 8)
    # Deviations of graphs with several retrainings, over retrainings.
    assert up.deviation == pytest.approx((1 + np.std([72, 76, 74])) / 2)
    assert base.deviation is None
    assert up.interval[0] < up.difference < up.interval[1]


def test_a_difference_on_every_graph_is_marked_and_drawn_filled(tmp_path):
    graphs = list("abcdefgh")
    cells = {
        "base": {graph: [50.0] for graph in graphs},
        "better": {graph: [52.0 + index] for index, graph in enumerate(graphs)},
        "noise": {graph: [50.0 + (-1) ** index] for index, graph in enumerate(graphs)},
    }
    found = compare(cells, "base")
    table = comparison_table(found, "base", "")
    assert table.rows[0][0] == Strong("better")
    assert [row[0] for row in table.rows[1:]] in (["noise", "base"], ["base", "noise"])
    assert "1 of 2 are ahead of base, 0 behind" in table.notes[0]
    figures = {"one": found, "two": found}
    paths = write_figure(comparison_figure(figures, "base"), tmp_path / "figure", described(figures))
    svg, png = paths
    assert "better +5.5" in svg.read_text(encoding="utf-8")
    assert png.stat().st_size > 1000
