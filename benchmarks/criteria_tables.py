"""How well criteria without labels choose between vectors, from lines of results/criteria.jsonl."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

import numpy as np
from markdown import NO_RESULTS, table
from scipy.stats import spearmanr

from spgcl.datasets.entries import entries

Record = dict[str, Any]


def criteria_table(lines: Sequence[Record]) -> str:
    """Per criterion and graph: rank correlation with the validation score, and regret of its choice."""
    graphs: dict[str, list[Record]] = defaultdict(list)
    for line in lines:
        graphs[line["dataset"]].append(line)
    names = [name for name in entries() if name in graphs]
    if not names:
        return NO_RESULTS
    rows = []
    for criterion in graphs[names[0]][0]["criteria"]:
        found = [judged(graphs[name], criterion) for name in names]
        correlations, regrets = zip(*found, strict=True)
        cells = [f"{one:+.2f} / {regret:.1f}" for one, regret in found]
        rows.append([criterion, *cells, f"{fmean(correlations):+.2f} / {fmean(regrets):.1f}"])
    fixed = ["auto, always", *[f"- / {regret_of(graphs[name], 'auto'):.1f}" for name in names]]
    rows.append([*fixed, f"- / {fmean(regret_of(graphs[name], 'auto') for name in names):.1f}"])
    counts = ", ".join(f"{name} {len(graphs[name])}" for name in names)
    return f"{table(['criterion', *names, 'mean'], rows)}\n\nSettings compared: {counts}."


def judged(lines: Sequence[Record], criterion: str) -> tuple[float, float]:
    """Rank correlation with the validation score, and points by which its choice is behind the best.

    Settings of which a criterion says nothing are left out, of the best one too.
    """
    known = [line for line in lines if line["criteria"][criterion] is not None]
    values = np.array([line["criteria"][criterion] for line in known])
    scores = np.array([line["validation"] for line in known])
    correlation = 0.0
    if len(known) > 1 and np.ptp(values) > 0 and np.ptp(scores) > 0:
        correlation = float(spearmanr(values, scores).statistic)
    return correlation, float(scores.max() - scores[values.argmax()])


def regret_of(lines: Sequence[Mapping[str, Any]], setting: str) -> float:
    """Points by which a setting is behind the best one."""
    scores = {line["setting"]: float(line["validation"]) for line in lines}
    return max(scores.values()) - scores[setting]
