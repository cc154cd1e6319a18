"""Claims of the paper, whether they hold here, and the evidence in numbers."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from spgcl.datasets.entries import entries
from spgcl.experiments.layouts import curve, homophily, mean_test, weight_norms
from spgcl.experiments.paper import claimed, printed, printed_score
from spgcl.experiments.results import Record, Results
from spgcl.methods import find

Found = Mapping[str, Results]
Verdict = Literal["holds", "holds in part", "does not hold", "not measured"]
# A difference in points that a reader would call none.
CLOSE = 2.0


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, and what the results here say of it."""

    text: str
    verdict: Verdict
    evidence: str = ""


def claims(found: Found) -> list[Claim]:
    """Every claim that the results can be asked about."""
    return [Claim(text, *CHECKS[name](found)) for name, text in claimed().items()]


def _verdict(right: int, total: int) -> Verdict:
    if not total:
        return "not measured"
    return "holds" if right == total else "holds in part" if right else "does not hold"


def _first_on_heterophilic(found: Found) -> tuple[Verdict, str]:
    return _first(found["table2"])


def _first_on_homophilic(found: Found) -> tuple[Verdict, str]:
    verdict, evidence = _first(found["table1"])
    if verdict == "not measured":
        return verdict, evidence
    rivals = _rivals(found["table1"], "paper", printed_only=True)
    gaps = {graph: max(scores.values()) - scores["spgcl"] for graph, scores in rivals.items()}
    worst = max(gaps, key=lambda graph: gaps[graph])
    first = sum(gap <= 0 for gap in gaps.values())
    kept: Verdict = "holds" if first >= 2 and gaps[worst] <= CLOSE else "holds in part"
    return kept, f"{evidence} It is at most {gaps[worst]:.1f} points behind the best ({worst})."


def _first(results: Results) -> tuple[Verdict, str]:
    """On how many of the paper's graphs it is first: under both probes, with and without more rivals."""
    parts: list[str] = []
    verdict: Verdict = "not measured"
    for probe, title in (("paper", "the paper's probe"), ("tuned", "the tuned probe")):
        for printed_only in (True, False):
            rivals = _rivals(results, probe, printed_only=printed_only)
            if not rivals:
                return "not measured", ""
            first = [graph for graph, scores in rivals.items() if scores["spgcl"] >= max(scores.values())]
            if not parts:
                verdict = _verdict(len(first), len(rivals))
            among = "the paper's unsupervised methods" if printed_only else "all rows without labels"
            names = f" ({', '.join(first)})" if first else ""
            parts.append(f"among {among} under {title} on {len(first)} of {len(rivals)}{names}")
    return verdict, f"It is first {'; '.join(parts)}."


def _rivals(results: Results, probe: str, *, printed_only: bool) -> dict[str, dict[str, float]]:
    """Mean scores of the rows without labels by graph, for graphs of the paper that have the method's."""
    plan = results.plan
    found = {}
    for graph in plan.graphs:
        if printed_score(plan, "spgcl", graph) is None:
            continue
        scores = {
            row: mean_test(lines, probe)
            for row in plan.row_names
            if (lines := results.of_cell(row, graph))
            and not find(lines[0]["method"]).supervised
            and (row == "spgcl" or lines[0]["method"] != "spgcl")
            and (not printed_only or row in _printed_rows(results))
        }
        if "spgcl" in scores:
            found[graph] = scores
    return found


def _printed_rows(results: Results) -> set[str]:
    plan = results.plan
    return {
        row
        for row in plan.row_names
        if any(printed_score(plan, row, graph) is not None for graph in plan.graphs)
    }


def _training_helps(found: Found) -> tuple[Verdict, str]:
    gains = {}
    for name in ("table1", "table2"):
        results = found[name]
        for graph, scores in _rivals(results, "tuned", printed_only=False).items():
            still = [scores[row] for row in results.plan.view["untrained"] if row in scores]
            if still:
                gains[graph] = scores["spgcl"] - max(still)
    if not gains:
        return "not measured", ""
    ahead = [graph for graph, gain in gains.items() if gain > 0]
    named = f" ({', '.join(ahead)})" if ahead else ""
    return _verdict(len(ahead), len(gains)), (
        f"Under the tuned probe it is above the best of the rows without training on {len(ahead)} of "
        f"{len(gains)} graphs{named}; mean difference {fmean(gains.values()):+.1f} points."
    )


def _memory(found: Found) -> tuple[Verdict, str]:
    results, parts, right = found["table3"], [], 0
    for graph in results.plan.graphs:
        peaks = {
            row: lines[-1]["peak_mib"]
            for row in results.plan.row_names
            if (lines := results.of_cell(row, graph))
        }
        if len(peaks) < len(results.plan.row_names):
            continue
        own = peaks.pop("spgcl")
        right += own is not None and all(other is None or own < other for other in peaks.values())
        shown = ", ".join(f"{row} {_times(peak, own)}" for row, peak in peaks.items())
        parts.append(f"{graph}: {shown}")
    evidence = f"Peak memory as a multiple of its own: {'; '.join(parts)}." if parts else ""
    return _verdict(right, len(parts)), evidence


def _times(peak: float | None, own: float | None) -> str:
    if peak is None or own is None:
        return "out of memory" if peak is None else "fits"
    return f"{peak / own:.1f}"


def _more_homophilic_at_start(found: Found) -> tuple[Verdict, str]:
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
        else ("holds" if expected else _verdict(total - len(lower), total), text)
    )


def _training_raises_homophily(found: Found) -> tuple[Verdict, str]:
    rises = {
        graph: fmean(homophily(lines, end=True)) - fmean(homophily(lines, end=False))
        for graph, lines in _homophily_lines(found)
    }
    if not rises:
        return "not measured", ""
    changes = ", ".join(f"{graph} {change:+.3f}" for graph, change in rises.items())
    captioned, exchanged = (_distance(found, exchanged=choice) for choice in (False, True))
    return _verdict(sum(change > 0 for change in rises.values()), len(rises)), (
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


def _nodes_gather(found: Found) -> tuple[Verdict, str]:
    changes = {}
    for graph, (_, values) in _curves(found["fig-distance"], "class_centre_distance"):
        changes[graph] = (fmean(values[0]), fmean(values[-1]))
    text = ", ".join(f"{graph} {first:.2f} to {last:.2f}" for graph, (first, last) in changes.items())
    return _verdict(sum(last < first for first, last in changes.values()), len(changes)), (
        f"Mean cosine distance to the class centre, first to last step: {text}." if text else ""
    )


def _every_node_is_chosen(found: Found) -> tuple[Verdict, str]:
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
    return _verdict(right, len(covers)), f"Cover ratio at the end, and mean overlap of two steps: {text}."


def _curves(results: Results, name: str) -> Iterable[tuple[str, tuple[list[int], list[list[float]]]]]:
    for graph in results.plan.graphs:
        steps, values = curve(results.of_cell(results.plan.row_names[0], graph), name)
        if steps:
            yield graph, (steps, values)


def _batch_norm_scores(found: Found) -> tuple[Verdict, str]:
    gains = {
        (layers, graph): mean_test(with_norm, "paper") - mean_test(without, "paper")
        for layers, graph, with_norm, without in _pairs(found["table6"])
    }
    quoted = [
        printed("table6")[f"layers={layers}, batch_norm=plain"][graph]["accuracy"]
        - printed("table6")[f"layers={layers}, batch_norm=none"][graph]["accuracy"]
        for layers, graph in gains
    ]
    return _verdict(sum(gain > 0 for gain in gains.values()), len(gains)), (
        f"Batch norm is better in {sum(gain > 0 for gain in gains.values())} of {len(gains)} pairs, by "
        f"{fmean(gains.values()):+.1f} points on average ({fmean(quoted):+.1f} in the paper)."
        if gains
        else ""
    )


def _batch_norm_weights(found: Found) -> tuple[Verdict, str]:
    ratios = [
        sum(map(fmean, zip(*map(weight_norms, with_norm), strict=True)))
        / sum(map(fmean, zip(*map(weight_norms, without), strict=True)))
        for _, _, with_norm, without in _pairs(found["table6"])
    ]
    if not ratios:
        return "not measured", ""
    smaller = sum(ratio < 1 for ratio in ratios)
    return _verdict(smaller, len(ratios)), (
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


def _spread_of(name: str) -> "Check":
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
    return _verdict(right, len(spreads)), (
        f"Points between the best and the worst mean: {text}; called insensitive up to {CLOSE:g}."
        if text
        else ""
    )


def _every_encoder_gains(found: Found) -> tuple[Verdict, str]:
    gains, parts = {}, []
    for rival in ("supervised", "untrained"):
        gains[rival] = _gains_over(found["table10"], rival)
        if gains[rival]:
            ahead = sum(gain > 0 for gain in gains[rival].values())
            listed = ", ".join(f"{name} {gain:+.1f}" for name, gain in gains[rival].items())
            parts.append(
                f"Above the {rival} encoder in {ahead} of {len(gains[rival])} cases: {listed} points."
            )
    trained = gains["supervised"]
    return _verdict(sum(gain > 0 for gain in trained.values()), len(trained)), " ".join(parts)


def _gains_over(results: Results, rival: str) -> dict[str, float]:
    """What contrastive training gains over the same encoder otherwise, by encoder and graph."""
    gains = {}
    for kind in dict.fromkeys(row.partition(",")[0] for row in results.plan.row_names):
        for graph in results.plan.graphs:
            trained, other = (results.of_cell(f"{kind}, {row}", graph) for row in ("contrastive", rival))
            if trained and other:
                gains[f"{kind} on {graph}"] = mean_test(trained, "paper") - mean_test(other, "paper")
    return gains


def _degree_helps(found: Found) -> tuple[Verdict, str]:
    scores = {}
    for name in ("table1", "table2"):
        for graph, row in _rivals(found[name], "paper", printed_only=True).items():
            scores[graph] = row["spgcl"]
    degrees = {}
    for graph in scores:
        if lines := found["table8"].of_cell("data", graph):
            degrees[graph] = lines[0]["figures"]["average_degree"]["loaded"]
    shared = [graph for graph in scores if graph in degrees]
    if len(shared) < 3:
        return "not measured", ""
    here = _rank_correlation([degrees[graph] for graph in shared], [scores[graph] for graph in shared])
    papers = [entries()[graph].paper["average_degree"] for graph in shared]
    quoted = _rank_correlation(papers, [scores[graph] for graph in shared])
    verdict: Verdict = "holds" if here > 0.5 else "holds in part" if here > 0.2 else "does not hold"
    return verdict, (
        f"Rank correlation of average degree and score over {len(shared)} graphs: {here:+.2f} "
        f"({quoted:+.2f} with the paper's degrees). Graphs differ by much else."
    )


def _rank_correlation(one: Sequence[float], other: Sequence[float]) -> float:
    from scipy.stats import spearmanr

    return float(spearmanr(one, other).statistic)


Check = Callable[[Found], tuple[Verdict, str]]
# By the name that the claim has in paper.toml.
CHECKS: dict[str, Check] = {
    "heterophilic": _first_on_heterophilic,
    "homophilic": _first_on_homophilic,
    "training": _training_helps,
    "memory": _memory,
    "start": _more_homophilic_at_start,
    "end": _training_raises_homophily,
    "distance": _nodes_gather,
    "cover": _every_node_is_chosen,
    "batch_norm": _batch_norm_scores,
    "weights": _batch_norm_weights,
    "l2": _spread_of("table7"),
    "positives": _spread_of("fig-topk"),
    "hops": _spread_of("fig-thop"),
    "encoders": _every_encoder_gains,
    "degree": _degree_helps,
}
