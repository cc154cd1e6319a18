"""The search behind the preset `validated`: its winners, its budget, its tables."""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from statistics import fmean
from typing import Any

import spaces
from markdown import NO_RESULTS, table

from spgcl.datasets.entries import entries
from spgcl.methods import METHODS, resolved_settings

Record = dict[str, Any]

PRESETS_HEAD = """\
# Chosen on validation scores only, per graph: the winners of benchmarks/search.py, whose trials and scores
# are in results/search.jsonl. Only what differs from the defaults is listed; where nothing does, they won.
# Written by benchmarks/tables.py."""
# The first candidate for SP-GCL's defaults, which the others are compared with, and the first trial beyond
# the budget that every method has; results/README.md lists all.
FIRST_CANDIDATE, FIRST_FURTHER = 100, 200


def validations(records: Iterable[Record], method: str = "spgcl") -> dict[str, dict[int, list[float]]]:
    """Validation scores of a method by graph and trial, one per seed; a failed setting counts as 0."""
    found: dict[str, dict[int, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for record in records:
        if record["method"] == method:
            found[record["dataset"]][record["trial"]][record["seed"]] = record["validation"] or 0.0
    return {
        name: {trial: [by_seed[seed] for seed in sorted(by_seed)] for trial, by_seed in trials.items()}
        for name, trials in found.items()
    }


def winner(trials: dict[int, list[float]]) -> int | None:
    """The trial with the best mean among the finalists; None while a draw or a seed of a finalist is missing.

    Finalists of the draws are those with the best first score, whatever else was trained. Those of further
    trials are all that were trained with every seed.
    """
    seeds = 1 + spaces.MORE_SEEDS
    drawn = sorted(trial for trial in trials if trial < spaces.TRIALS)
    finalists = spaces.finalists({trial: trials[trial][0] for trial in drawn})
    if len(drawn) < spaces.TRIALS or any(len(trials[trial]) < seeds for trial in finalists):
        return None
    later = (trial for trial in trials if trial >= spaces.TRIALS and len(trials[trial]) >= seeds)
    return max([*finalists, *later], key=lambda trial: fmean(trials[trial]))


def best_draw(records: Iterable[Record], method: str, name: str) -> int | None:
    """The winner among as many settings as every method has."""
    trials = validations(records, method).get(name, {})
    return winner({trial: scores for trial, scores in trials.items() if trial < FIRST_CANDIDATE})


def plainly_named(scores: Iterable[Record], records: Sequence[Record]) -> list[Record]:
    """Scores, with the name `published` if the search found that setting to be the best.

    `further` marks the scores of settings that were found beyond the budget that every method has.
    """
    decided = cache(lambda method: finished(records, method))

    @cache
    def best(method: str, name: str, preset: str | None) -> int | None:
        if preset == "validated":
            return decided(method)[name][1] if name in decided(method) else None
        return best_draw(records, method, name) if preset == spaces.DRAWN else None

    named = []
    for score in scores:
        method, name = score["method"], score["dataset"]
        trial = best(method, name, score["preset"])
        if trial == 0 and spaces.own_preset(method, name) == "published":
            score = {**score, "preset": "published"}
        elif trial is not None and trial >= FIRST_FURTHER:
            score = {**score, "further": True}
        named.append(score)
    return named


def found_table(records: Sequence[Record], methods: Iterable[str] = ("spgcl",)) -> str:
    """What the search found, by method and graph: published and best validation score, trainings."""
    rows = []
    for method in methods:
        for name, (trials, best) in finished(records, method).items():
            scores = [
                f"{fmean(trials[trial]):.2f} ({len(trials[trial])})" if trial in trials else "-"
                for trial in (0, best)
            ]
            counts = [str(len(trials)), str(sum(map(len, trials.values())))]
            rows.append([method, name, _kind(best), *scores, *counts])
    columns = ["method", "graph", "best setting", "published", "best", "settings", "trainings"]
    return table(columns, rows, text_columns=3) if rows else NO_RESULTS


def finished(records: Sequence[Record], method: str) -> dict[str, tuple[dict[int, list[float]], int]]:
    """Trials and winner of every graph whose search is done, in the order of the data sets."""
    found = validations(records, method)
    winners = {name: winner(found[name]) for name in entries() if name in found}
    return {name: (found[name], best) for name, best in winners.items() if best is not None}


def searched_text(records: Sequence[Record], method: str, scores: Sequence[Record]) -> str:
    """On which of SP-GCL's graphs a method was searched, and on which its winner has no test score."""
    if method not in spaces.SPACES:
        return ""
    decided = finished(records, method)
    graphs = list(finished(records, "spgcl"))
    done = [name for name in graphs if name in decided]
    left = [name for name in graphs if name not in decided]
    if not done:
        return "No graph was searched."
    parts = [f"Searched, {spaces.TRIALS} settings per graph: {', '.join(done)}."]
    if more := _further(decided):
        parts.append(f"Further trials, changes to the best setting: {_numbers(more)}.")
    if left:
        parts.append(f"Not searched: {', '.join(left)}.")
    scored = {(record["method"], record["preset"], record["dataset"]) for record in scores}
    found = (name for name in done if decided[name][1] not in (0, spaces.DEFAULTS))
    if unscored := [name for name in found if (method, "validated", name) not in scored]:
        parts.append(f"Found, but not scored on test nodes: {', '.join(unscored)}.")
    return " ".join(parts)


def _further(decided: dict[str, tuple[dict[int, list[float]], int]]) -> dict[str, int]:
    """By graph, how many settings a method had beyond those that every method has, if any."""
    numbers = {name: sum(trial >= FIRST_FURTHER for trial in trials) for name, (trials, _) in decided.items()}
    return {name: number for name, number in numbers.items() if number}


def budget_text(records: Sequence[Record]) -> str:
    """Which methods were searched on which graphs, and which had more trials than the others."""
    decided = {method: finished(records, method) for method in spaces.SPACES}
    left = {name: [method for method in decided if name not in decided[method]] for name in decided["spgcl"]}
    done = [name for name, methods in left.items() if not methods]
    parts = [f"Every method was searched on {', '.join(done) or 'no graph yet'}."]
    if ahead := [f"on {name} {', '.join(methods)}" for name, methods in left.items() if methods]:
        parts.append(f"Unfinished, with fewer settings than SP-GCL: {'; '.join(ahead)}.")
    further = {method: _further(graphs) for method, graphs in decided.items()}
    if more := [f"{method} ({_numbers(graphs)})" for method, graphs in further.items() if graphs]:
        parts.append(f"Further trials were given to {', '.join(more)}.")
    trials = {record["trial"] for record in records if record["method"] == "spgcl"}
    if candidates := sum(FIRST_CANDIDATE <= trial < FIRST_FURTHER for trial in trials):
        parts.append(f"SP-GCL's defaults were chosen on these graphs, from {candidates} more settings.")
    return " ".join(parts)


def _numbers(more: dict[str, int]) -> str:
    return ", ".join(f"{number} on {name}" for name, number in more.items())


def presets_text(records: Sequence[Record]) -> str:
    """The preset `validated`: for every method and graph the winner, less what it has from the defaults."""
    settings = {
        (record["method"], record["dataset"], record["trial"]): record["settings"] for record in records
    }
    sections = [PRESETS_HEAD]
    for method in METHODS:
        defaults = resolved_settings(method, None, "", {})
        for name, (_, best) in finished(records, method).items():
            chosen = settings[method, name, best]
            lines = [
                f"{key} = {json.dumps(chosen[key])}"
                for key, default in defaults.items()
                if key in chosen and chosen[key] != default
            ]
            sections.append("\n".join([f"[{method}.{name}]", *lines]))
    return "\n\n".join(sections) + "\n"


def _kind(trial: int) -> str:
    """Where a trial's settings come from."""
    if trial < spaces.TRIALS:
        return "drawn" if trial else "published"
    if trial == spaces.DEFAULTS:
        return "earlier defaults"
    return "candidate" if FIRST_CANDIDATE <= trial < FIRST_FURTHER else "further trial"


def candidate_table(records: Sequence[Record]) -> str:
    """SP-GCL's settings that were trained on several graphs, by how far they are behind the best of each."""
    found = validations(records)
    best = {name: max(fmean(scores) for scores in trials.values()) for name, trials in found.items()}
    settings = {record["trial"]: record["settings"] for record in records if record["method"] == "spgcl"}
    first, defaults = settings.get(FIRST_CANDIDATE, {}), resolved_settings("spgcl", None, "", {})
    rows = []
    for trial, given in settings.items():
        # The published settings differ between graphs, and further trials are made for one graph each.
        if not 0 < trial < FIRST_FURTHER:
            continue
        behind = {
            name: best[name] - fmean(trials[trial]) for name, trials in found.items() if trial in trials
        }
        last = max(behind, key=lambda name: behind[name])
        changes = [f"{name}={value}" for name, value in given.items() if value != first.get(name, value)]
        if all(defaults[name] == value for name, value in given.items()):
            changes.append("the defaults")
        cells = [f"{fmean(behind.values()):.2f}", f"{behind[last]:.2f} ({last})", str(len(behind))]
        # Those on more graphs first: means over different graphs do not compare.
        rows.append(((-len(behind), fmean(behind.values())), [", ".join(changes) or "(none)", *cells]))
    rows.sort()
    columns = ["changes to the first candidate", "mean gap", "largest gap", "graphs"]
    return table(columns, [cells for _, cells in rows]) if rows else NO_RESULTS


def search_text(records: Sequence[Record]) -> str:
    """The budget of the search, and what it found for SP-GCL."""
    competed = [record for record in records if record["trial"] == spaces.DEFAULTS]
    pairs = {f"{record['method']} on {record['dataset']}" for record in competed}
    also = f" The earlier defaults competed as well for {', '.join(sorted(pairs))}." if pairs else ""
    return (
        f"Every method has {spaces.TRIALS} trials on every graph. The best {spaces.FINALISTS} are trained "
        f"with {spaces.MORE_SEEDS} more seeds.{also}\n\n{found_table(records)}"
    )
