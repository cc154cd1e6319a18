"""The choice of the baselines' defaults: one setting per method, by its mean over all searched graphs."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import score_tables
import search_tables
import spaces
from markdown import NO_RESULTS, table

Record = dict[str, Any]
ByGraph = dict[str, float]
ByTrainings = dict[str, list[Record]]

# A smaller lead of the best draw may be chance: means over the graphs differ by this from seed to seed.
NOISE = 0.5
# How many points defaults may be below the preset `validated`.
ALLOWED = 3.0
# What a graph of the search has besides the defaults.
PRESETS = ("published", "validated")


@dataclass(frozen=True)
class Choice:
    """Validation scores by graph, of one training each.

    Attributes:
        earlier: Of the earlier defaults, on the graphs where they were trained.
        draws: By trial, of the settings that are the same on every graph.
        validated: Of the winner of each graph's search.
    """

    earlier: ByGraph
    draws: dict[int, ByGraph]
    validated: ByGraph

    @property
    def best(self) -> int:
        """The draw with the best mean, or a further candidate that is ahead of it by more than chance."""
        means = {trial: fmean(scores.values()) for trial, scores in self.draws.items()}
        first = max((trial for trial in means if trial < spaces.TRIALS), key=means.__getitem__)
        last = max(means, key=means.__getitem__)
        return last if means[last] - means[first] > NOISE else first

    @property
    def gain(self) -> float:
        """What the best draw is ahead of the earlier defaults, where both were trained."""
        best = self.draws[self.best]
        return fmean(best[name] - score for name, score in self.earlier.items())

    @property
    def trial(self) -> int | None:
        """The draw that is the defaults; None if the earlier ones are kept, as good enough."""
        is_kept = self.gain <= NOISE and self._gap(self.earlier) <= ALLOWED
        return None if is_kept else self.best

    @property
    def gap(self) -> float:
        """What the chosen defaults are behind the preset `validated`, on average."""
        return self._gap(self.earlier if self.trial is None else self.draws[self.trial])

    def _gap(self, scores: ByGraph) -> float:
        return fmean(self.validated[name] - score for name, score in scores.items())


def choice(records: Sequence[Record], scores: Iterable[Record], method: str) -> Choice | None:
    """The candidates for a method's defaults; None while a search is unfinished or nothing is to compare.

    Some trials were trained with more seeds, so all are compared by their first. A failed setting is 0.
    """
    names = list(search_tables.finished(records, "spgcl"))
    ended = search_tables.finished(records, method)
    if not names or any(name not in ended for name in names):
        return None
    firsts: dict[int, ByGraph] = defaultdict(dict)
    for name in names:
        for trial, seeds in ended[name][0].items():
            firsts[trial][name] = seeds[0]
    candidates = (*range(1, spaces.TRIALS), *spaces.CANDIDATES.get(method, ()))
    draws = {trial: firsts[trial] for trial in candidates if len(firsts[trial]) == len(names)}
    validated = {name: firsts[ended[name][1]][name] for name in names}
    earlier = _earlier(firsts, scores, method, names)
    return Choice(earlier, draws, validated) if earlier else None


def _earlier(
    firsts: dict[int, ByGraph], scores: Iterable[Record], method: str, names: Iterable[str]
) -> ByGraph:
    """Trial 0 where nothing is published, else their own trial, else their score if they were scored."""
    scored: dict[str | None, ByGraph] = defaultdict(dict)
    for record in scores:
        if record["method"] == method and record["seed"] == 0 and not record["given"]:
            validation = next(iter(record["scores"].values()))["validation"]
            scored[record["preset"]][record["dataset"]] = validation
    # The defaults of a method that kept them have no other name.
    kept = {} if spaces.EARLIER in scored else scored[None]
    known = {**scored[spaces.EARLIER_WITH_BIAS], **scored[spaces.EARLIER], **kept}
    found = {}
    for name in names:
        trial = spaces.DEFAULTS if spaces.own_preset(method, name) else 0
        score = firsts[trial].get(name, known.get(name))
        if score is not None:
            found[name] = score
    return found


def default_table(records: Sequence[Record], scores: Sequence[Record]) -> str:
    """By baseline: the earlier defaults, the best candidate, which is chosen, its gap and its test scores."""
    rows = []
    tested = [score_tables.best_of(scores, "tuned", presets) for presets in ((None,), PRESETS)]
    for method in (method for method in spaces.SPACES if method != "spgcl"):
        found = choice(records, scores, method)
        if found is None:
            continue
        count = len(found.earlier)
        graphs = "" if count == len(found.validated) else f" ({count} graphs)"
        gap = f"{found.gap:.2f}"
        rows.append(
            [
                method,
                "kept" if found.trial is None else f"trial {found.trial}",
                f"{fmean(found.earlier.values()):.2f}{graphs}",
                f"{fmean(found.draws[found.best].values()):.2f}",
                f"{found.gain:+.2f}",
                f"{fmean(found.validated.values()):.2f}",
                f"**{gap}**" if found.gap > ALLOWED else gap,
                *_test_means(*(graphs.get(method, {}) for graphs in tested)),
            ]
        )
    columns = ["method", "defaults", "earlier defaults", "best", "gain", "`validated`", "gap"]
    columns += ["test, defaults", "test, preset"]
    return table(columns, rows, text_columns=2) if rows else NO_RESULTS


def _test_means(defaults: ByTrainings, presets: ByTrainings) -> list[str]:
    """Mean test scores under the tuned probe over the graphs where both were trained."""
    names = defaults.keys() & presets.keys()
    means = [
        fmean(score_tables.mean_score(graphs[name], "tuned") for name in sorted(names)) if names else None
        for graphs in (defaults, presets)
    ]
    return ["-" if mean is None else f"{mean:.2f}" for mean in means]
