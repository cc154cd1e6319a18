"""Claims about what training does, and which settings matter."""

from collections.abc import Iterable, Sequence
from statistics import fmean

from spgcl.experiments.layouts import curve, homophily, mean_test, weight_norms
from spgcl.experiments.paper import printed
from spgcl.experiments.results import Record, Results
from spgcl.experiments.verdicts import CLOSE, Check, Found, Verdict, verdict_of


def more_homophilic_at_start(found: Found) -> tuple[Verdict, str]:
    """Table 5: above the homophily of the graph, but on one."""
    lower, total = [], 0
    for graph, lines in _homophily_lines(found):
        total += 1
        start, graphs = fmean(homophily(lines, end=False)), lines[0]["edge_homophily"]
        if start <= graphs:
            lower.append(f"{graph} ({start:.3f}, graph {graphs:.3f})")
    text = (
        f"Lower than the graph's own on {', '.join(lower)}." if lower else "Higher on every measured graph."
    )
    expected = all(item.startswith("citeseer") for item in lower)
    return (
        ("not measured", "")
        if not total
        else ("holds" if expected else verdict_of(total - len(lower), total), text)
    )


def training_raises_homophily(found: Found) -> tuple[Verdict, str]:
    """Tables 4 and 5: higher at the end than at the start."""
    rises = {
        graph: fmean(homophily(lines, end=True)) - fmean(homophily(lines, end=False))
        for graph, lines in _homophily_lines(found)
    }
    if not rises:
        return "not measured", ""
    changes = ", ".join(f"{graph} {change:+.3f}" for graph, change in rises.items())
    captioned, exchanged = (_distance(found, exchanged=choice) for choice in (False, True))
    return verdict_of(sum(change > 0 for change in rises.values()), len(rises)), (
        f"From start to end of training here: {changes}. Mean distance to the paper's figures: "
        f"{captioned:.3f} as captioned, {exchanged:.3f} with the captions exchanged."
    )


def _distance(found: Found, *, exchanged: bool) -> float:
    """Mean absolute difference to tables 4 and 5, taken for what their captions say, or the reverse."""
    return fmean(
        abs(
            fmean(homophily(lines, end=end))
            - printed("table4" if end != exchanged else "table5")[graph]["mean"]
        )
        for graph, lines in _homophily_lines(found)
        for end in (False, True)
    )


def _homophily_lines(found: Found) -> Iterable[tuple[str, list[Record]]]:
    results = found["table5"]
    for graph in results.plan.graphs:
        if lines := results.of_cell(results.plan.row_names[0], graph):
            yield graph, lines


def nodes_gather(found: Found) -> tuple[Verdict, str]:
    """Figure 3: the distance to the class centre falls."""
    changes = {}
    for graph, (_, values) in _curves(found["fig-distance"], "class_centre_distance"):
        changes[graph] = (fmean(values[0]), fmean(values[-1]))
    text = ", ".join(f"{graph} {first:.2f} to {last:.2f}" for graph, (first, last) in changes.items())
    return verdict_of(sum(last < first for first, last in changes.values()), len(changes)), (
        f"Mean cosine distance to the class centre, first to last step: {text}." if text else ""
    )


def every_node_is_chosen(found: Found) -> tuple[Verdict, str]:
    """Figure 4: coverage is nearly complete, and few pairs repeat."""
    covers = {
        graph: fmean(values[-1]) for graph, (_, values) in _curves(found["fig-cover"], "node_cover_ratio")
    }
    overlaps = {
        graph: fmean(map(fmean, values))
        for graph, (_, values) in _curves(found["fig-cover"], "overlapped_selection_ratio")
    }
    if not covers:
        return "not measured", ""
    right = sum(covers[graph] > 0.99 and overlaps[graph] < 0.5 for graph in covers)
    text = ", ".join(f"{graph} {cover:.3f} and {overlaps[graph]:.2f}" for graph, cover in covers.items())
    return verdict_of(right, len(covers)), f"Cover ratio at the end, and mean overlap of two steps: {text}."


def _curves(results: Results, name: str) -> Iterable[tuple[str, tuple[list[int], list[list[float]]]]]:
    for graph in results.plan.graphs:
        steps, values = curve(results.of_cell(results.plan.row_names[0], graph), name)
        if steps:
            yield graph, (steps, values)


def batch_norm_scores(found: Found) -> tuple[Verdict, str]:
    """Table 6: better with batch norm at the same depth."""
    gains = {
        (layers, graph): mean_test(with_norm, "paper") - mean_test(without, "paper")
        for layers, graph, with_norm, without in _pairs(found["table6"])
    }
    quoted = [
        printed("table6")[f"layers={layers}, batch_norm=plain"][graph]["accuracy"]
        - printed("table6")[f"layers={layers}, batch_norm=none"][graph]["accuracy"]
        for layers, graph in gains
    ]
    return verdict_of(sum(gain > 0 for gain in gains.values()), len(gains)), (
        f"Batch norm is better in {sum(gain > 0 for gain in gains.values())} of {len(gains)} pairs, by "
        f"{fmean(gains.values()):+.1f} points on average ({fmean(quoted):+.1f} in the paper)."
        if gains
        else ""
    )


def batch_norm_weights(found: Found) -> tuple[Verdict, str]:
    """Table 6: smaller sums of squared weights with batch norm."""
    ratios = [
        sum(map(fmean, zip(*map(weight_norms, with_norm), strict=True)))
        / sum(map(fmean, zip(*map(weight_norms, without), strict=True)))
        for _, _, with_norm, without in _pairs(found["table6"])
    ]
    if not ratios:
        return "not measured", ""
    smaller = sum(ratio < 1 for ratio in ratios)
    return verdict_of(smaller, len(ratios)), (
        f"The sum of squared weights is smaller with batch norm in {smaller} of {len(ratios)} pairs; ratio "
        f"{min(ratios):.2f} to {max(ratios):.2f}."
    )


def _pairs(results: Results) -> Iterable[tuple[int, str, Sequence[Record], Sequence[Record]]]:
    for graph in results.plan.graphs:
        for layers in (1, 2, 3):
            rows = [f"layers={layers}, batch_norm={kind}" for kind in ("plain", "none")]
            with_norm, without = (results.of_cell(row, graph) for row in rows)
            if with_norm and without:
                yield layers, graph, with_norm, without


def spread_of(name: str) -> "Check":
    """A check that the means over the values of a hyper-parameter are close on every graph."""
    return lambda found: _spread(found[name])


def _spread(results: Results) -> tuple[Verdict, str]:
    """Whether the means over a hyper-parameter's values are close to each other on every graph."""
    spreads = {}
    for graph in results.plan.graphs:
        means = [
            mean_test(lines, "paper")
            for row in results.plan.row_names
            if (lines := results.of_cell(row, graph))
        ]
        if len(means) == len(results.plan.row_names):
            spreads[graph] = max(means) - min(means)
    text = ", ".join(f"{graph} {spread:.1f}" for graph, spread in spreads.items())
    right = sum(spread <= CLOSE for spread in spreads.values())
    return verdict_of(right, len(spreads)), (
        f"Points between the best and the worst mean: {text}; called insensitive up to {CLOSE:g}."
        if text
        else ""
    )
