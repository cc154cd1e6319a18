"""The parts of docs/results.md about the search: its spaces, its budget, its results."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from statistics import fmean
from typing import Any

import spaces

from spgcl.datasets.entries import entries
from spgcl.methods import METHODS, resolved_settings

Record = dict[str, Any]
Table = Callable[..., str]

# A setting competes once it was trained with so many seeds.
LEAST_SEEDS = 1 + spaces.ROUNDS["draws"].more_seeds
PRESETS_HEAD = """\
# Chosen on validation scores only, per graph: the winners of benchmarks/search.py, whose trials and scores
# are in results/search.jsonl. Only what differs from the defaults is listed.
# Written by benchmarks/tables.py."""
# Where a trial's settings come from, by the first trial of a round. Only draws and defaults can be searched
# again; the settings of the others are in results/search.jsonl.
KINDS = {
    0: "drawn",
    spaces.DEFAULTS: "defaults",
    60: "other number of steps",
    100: "candidate",
    200: "one trial changed",
    300: "two settings changed",
    400: "four settings changed",
    500: "other encoder",
    600: "large pool, six settings changed",
}
# Candidates for SP-GCL's defaults, the first of which the others are compared with; then trials beyond the
# budget that every method has.
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

    Finalists of the draws are those with the best first score, and no others, whatever else was trained.
    Those of further rounds are all that were trained with every seed.
    """
    draws = spaces.ROUNDS["draws"]
    drawn = sorted(trial for trial in trials if trial < draws.trials)
    finalists = draws.best({trial: trials[trial][0] for trial in drawn})
    if len(drawn) < draws.trials or any(len(trials[trial]) < LEAST_SEEDS for trial in finalists):
        return None
    later = (trial for trial in trials if trial >= draws.trials and len(trials[trial]) >= LEAST_SEEDS)
    return max([*finalists, *later], key=lambda trial: fmean(trials[trial]))


def best_draw(records: Iterable[Record], method: str, name: str) -> int | None:
    """The winner among the settings that every method has as many of."""
    trials = validations(records, method).get(name, {})
    return winner({trial: scores for trial, scores in trials.items() if trial < FIRST_CANDIDATE})


def plainly_named(scores: Iterable[Record], records: Sequence[Record]) -> list[Record]:
    """Scores, with the name `published` where the search found that setting to be the best.

    `further` marks the scores of settings that were found beyond the budget that every method has.
    """
    decided = cache(lambda method: _decided(records, method))

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


COLUMNS = ["graph", "best setting", "published, validation", "best, validation", "settings", "trainings"]


def found_table(records: Sequence[Record], table: Table, nothing: str, method: str = "spgcl") -> str:
    """What the search found for a method, by graph: published and best validation score, trainings."""
    rows = _found_rows(records, method)
    return table(COLUMNS, rows, text_columns=2) if rows else nothing


def baseline_table(records: Sequence[Record], table: Table, nothing: str) -> str:
    """The same for all methods but SP-GCL."""
    searched = dict.fromkeys(record["method"] for record in records if record["method"] != "spgcl")
    rows = [[method, *row] for method in sorted(searched) for row in _found_rows(records, method)]
    return table(["method", *COLUMNS], rows, text_columns=3) if rows else nothing


def _found_rows(records: Sequence[Record], method: str) -> list[list[str]]:
    """A row for every graph whose search is done."""
    rows = []
    for name, (trials, best) in _decided(records, method).items():
        cells = ["-" if trial not in trials else _validation(trials[trial]) for trial in (0, best)]
        rows.append([name, _kind(best), *cells, str(len(trials)), str(sum(map(len, trials.values())))])
    return rows


def _decided(records: Sequence[Record], method: str) -> dict[str, tuple[dict[int, list[float]], int]]:
    """Trials and winner of every graph whose search is done, in the order of the data sets."""
    found = validations(records, method)
    winners = {name: winner(found[name]) for name in entries() if name in found}
    return {name: (found[name], best) for name, best in winners.items() if best is not None}


def searched_text(records: Sequence[Record], method: str, scores: Sequence[Record]) -> str:
    """On which of SP-GCL's graphs a method was searched, and where its winner has no test score."""
    if method not in spaces.SPACES:
        return ""
    decided = _decided(records, method)
    graphs = list(_decided(records, "spgcl"))
    done = [name for name in graphs if name in decided]
    left = [name for name in graphs if name not in decided]
    trials = spaces.ROUNDS["draws"].trials
    if not done:
        return "No graph was searched."
    parts = [f"Searched, {trials} settings per graph: {', '.join(done)}."]
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
    """How many settings a method had on a graph beyond those that every method has, where it had any."""
    numbers = {name: sum(trial >= FIRST_FURTHER for trial in trials) for name, (trials, _) in decided.items()}
    return {name: number for name, number in numbers.items() if number}


def equal_budget_text(records: Sequence[Record]) -> str:
    """What the row *equal budget* leaves out: further trials, and defaults chosen on these graphs."""
    text = "The last SP-GCL row (*equal budget*) uses only as many trials as every other method had."
    if more := _further(_decided(records, "spgcl")):
        text += (
            f" The row above it had more: on {', '.join(more)} its preset `validated` comes from further "
            f"trials ({_numbers(more)})."
        )
    own = {record["trial"] for record in records if record["method"] == "spgcl"}
    if candidates := sum(FIRST_CANDIDATE <= trial < FIRST_FURTHER for trial in own):
        text += (
            " SP-GCL's defaults do not count for *equal budget* either: they were chosen on these graphs, "
            f"with {candidates} settings beyond the search."
        )
    return text


def further_text(records: Sequence[Record]) -> str:
    """Which baselines had more settings than the others, and how many."""
    further = {method: _further(_decided(records, method)) for method in spaces.SPACES if method != "spgcl"}
    parts = [f"{method} ({_numbers(more)})" for method, more in further.items() if more]
    return f"Baselines below the paper had further trials: {', '.join(parts)}." if parts else ""


def _numbers(more: dict[str, int]) -> str:
    return ", ".join(f"{number} on {name}" for name, number in more.items())


def budget_text(records: Sequence[Record]) -> str:
    """Graphs that every method was searched on, and whose search is unfinished on the others."""
    left: dict[str, list[str]] = {name: [] for name in _decided(records, "spgcl")}
    for method in spaces.SPACES:
        decided = _decided(records, method)
        for name in left:
            if name not in decided:
                left[name].append(method)
    done = [name for name, methods in left.items() if not methods]
    ahead = "; ".join(f"on {name} {', '.join(methods)}" for name, methods in left.items() if methods)
    text = f"Every method was searched on {', '.join(done) or 'no graph yet'}."
    return f"{text} Unfinished, with fewer settings than SP-GCL: {ahead}." if ahead else text


def presets_text(records: Sequence[Record]) -> str:
    """The preset `validated`: for every method and graph the winner, less what it has from the defaults."""
    settings = {
        (record["method"], record["dataset"], record["trial"]): record["settings"] for record in records
    }
    sections = [PRESETS_HEAD]
    for method in METHODS:
        defaults = resolved_settings(method, None, "", {})
        for name, (_, best) in _decided(records, method).items():
            chosen = settings[method, name, best]
            lines = [
                f"{key} = {json.dumps(chosen[key])}"
                for key, default in defaults.items()
                if key in chosen and chosen[key] != default
            ]
            if lines:
                sections.append("\n".join([f"[{method}.{name}]", *lines]))
    return "\n\n".join(sections) + "\n"


def _kind(trial: int) -> str:
    """Where a trial's settings come from."""
    return KINDS[max(first for first in KINDS if first <= trial)] if trial else "published"


def _validation(scores: Sequence[float]) -> str:
    return f"{fmean(scores):.2f} ({len(scores)})"


def candidate_table(records: Sequence[Record], table: Table, nothing: str, most: int = 12) -> str:
    """Settings for any graph that are closest to the best of each graph."""
    found = validations(records)
    best = {name: max(fmean(scores) for scores in trials.values()) for name, trials in found.items()}
    settings = {record["trial"]: record["settings"] for record in records if record["method"] == "spgcl"}
    defaults = resolved_settings("spgcl", None, "", {})
    first = settings.get(FIRST_CANDIDATE, {})
    rows = []
    for trial in settings:
        # The published settings differ between graphs, and later rounds are made for one graph each.
        if not 0 < trial < FIRST_FURTHER:
            continue
        behind = {
            name: best[name] - fmean(trials[trial]) for name, trials in found.items() if trial in trials
        }
        given = settings[trial]
        changed = ", ".join(
            f"{name}={value}" for name, value in given.items() if value != first.get(name, value)
        )
        chosen = all(defaults[name] == value for name, value in given.items())
        last = max(behind, key=lambda name: behind[name])
        rows.append((fmean(behind.values()), behind[last], last, len(behind), changed, chosen))
    # Those on more graphs first: means over different graphs do not compare.
    rows.sort(key=lambda row: (-row[3], row[0]))
    shown = [
        [
            changed or "(none)",
            "yes" if chosen else "",
            f"{mean:.2f}",
            f"{most_behind:.2f} ({name})",
            str(graphs),
        ]
        for mean, most_behind, name, graphs, changed, chosen in rows[:most]
    ]
    columns = ["changes to the first candidate", "defaults", "mean gap", "largest gap", "graphs"]
    return table(columns, shown, text_columns=2) if shown else nothing


def _with_defaults(records: Sequence[Record]) -> str:
    """Where the defaults competed with a published setting."""
    competed = [record for record in records if record["trial"] == spaces.DEFAULTS]
    if not competed:
        return ""
    pairs = sorted({f"{record['method']} on {record['dataset']}" for record in competed})
    return f"The defaults competed with the published setting for {', '.join(pairs)}. "


def space_text(records: Sequence[Record], table: Table) -> str:
    """The values that the search draws from, its budget, and for whom it was run."""
    searched = sorted({record["method"] for record in records})
    draws = spaces.ROUNDS["draws"]
    more = _further(_decided(records, "spgcl"))
    further = (
        f"SP-GCL ({_numbers(more)}) had further trials, changes to its best setting so far. " if more else ""
    )
    budget = (
        f"Every method has the same budget on every graph: {draws.trials} settings (the published one and "
        f"{draws.trials - 1} draws), of which the best {draws.finalists} are trained with {draws.more_seeds} "
        f"more seeds. Searched: {', '.join(searched) or 'none'}. {_with_defaults(records)}\n\n"
        "Some methods got a larger budget on graphs where their test score was below the paper's number; "
        f"validation scores alone choose between trials. {further}{further_text(records)} The search spaces "
        "of AFGRL, BGRL, GRACE and GCA were extended after a first search (shorter trainings, wider "
        "encoders, batch norm), and these methods were searched again; the earlier trials are in "
        "results/search-earlier.jsonl.\n\n"
        "The spaces of all methods are in [benchmarks/spaces.py](../benchmarks/spaces.py); the settings of "
        "every trial are in results/search.jsonl. The space of SP-GCL:"
    )
    rows = [[f"`{name}`", ", ".join(map(str, values))] for name, values in spaces.SPGCL.items()]
    return f"{budget}\n\n{table(['hyper-parameter', 'values'], rows, text_columns=2)}"
