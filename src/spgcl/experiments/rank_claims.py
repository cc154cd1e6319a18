"""Claims about how the method compares: scores, memory, encoders, degrees."""

from collections.abc import Sequence
from statistics import fmean

from spgcl.datasets.entries import entries
from spgcl.experiments.layouts import mean_test
from spgcl.experiments.paper import printed_score
from spgcl.experiments.results import Results
from spgcl.experiments.verdicts import CLOSE, Found, Verdict, verdict_of
from spgcl.methods import find


def first_on_heterophilic(found: Found) -> tuple[Verdict, str]:
    """Table 2: first of all."""
    return _first(found["table2"])


def first_on_homophilic(found: Found) -> tuple[Verdict, str]:
    """Table 1: first on two, close to the best on the others."""
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
                verdict = verdict_of(len(first), len(rivals))
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


def training_helps(found: Found) -> tuple[Verdict, str]:
    """Tables 1 and 2: above what is not trained."""
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
    return verdict_of(len(ahead), len(gains)), (
        f"Under the tuned probe it is above the best of the rows without training on {len(ahead)} of "
        f"{len(gains)} graphs{named}; mean difference {fmean(gains.values()):+.1f} points."
    )


def memory(found: Found) -> tuple[Verdict, str]:
    """Table 3: less than the others."""
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
    return verdict_of(right, len(parts)), evidence


def _times(peak: float | None, own: float | None) -> str:
    if peak is None or own is None:
        return "out of memory" if peak is None else "fits"
    return f"{peak / own:.1f}"


def every_encoder_gains(found: Found) -> tuple[Verdict, str]:
    """Table 10: above the same encoder without contrastive training."""
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
    return verdict_of(sum(gain > 0 for gain in trained.values()), len(trained)), " ".join(parts)


def _gains_over(results: Results, rival: str) -> dict[str, float]:
    """What contrastive training gains over the same encoder otherwise, by encoder and graph."""
    gains = {}
    for kind in dict.fromkeys(row.partition(",")[0] for row in results.plan.row_names):
        for graph in results.plan.graphs:
            trained, other = (results.of_cell(f"{kind}, {row}", graph) for row in ("contrastive", rival))
            if trained and other:
                gains[f"{kind} on {graph}"] = mean_test(trained, "paper") - mean_test(other, "paper")
    return gains


def degree_helps(found: Found) -> tuple[Verdict, str]:
    """Tables 1, 2 and 8: scores rise with the average degree."""
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
