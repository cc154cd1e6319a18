"""Scores as tables: one method's presets, all methods side by side, every setting."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from statistics import fmean, pstdev
from typing import Any

from markdown import NO_RESULTS, table
from spaces import DRAWN, EARLIER

from spgcl.datasets.entries import entries
from spgcl.experiments.plan import Run
from spgcl.experiments.results import is_current
from spgcl.methods import METHODS, find, parameters, presets
from spgcl.report.paper import paper_figure

# The authors' code in our own run on an NVIDIA H200, on the same graphs and splits. It drops CiteSeer's
# isolated nodes.
AUTHORS_CODE = {"cora": 81.97, "citeseer": 68.51, "pubmed": 79.63, "chameleon": 67.11, "squirrel": 51.98}

# Scores from the methods' own papers, on random splits with a tenth of the nodes labelled.
OWN_PAPER = {("grace", "cora"): "83.3", ("grace", "citeseer"): "72.1", ("grace", "pubmed"): "86.7"}

# A score this many points below the paper's is in bold.
ALLOWED = 2.0
HOMOPHILIC = (
    "cora",
    "citeseer",
    "pubmed",
    "amazon-computers",
    "amazon-photo",
    "coauthor-cs",
    "coauthor-physics",
)
HETEROPHILIC = ("chameleon", "squirrel", "actor", "twitch-de")
# Trained methods in the order of the paper's tables.
ORDER = sorted((name for name in METHODS if "steps" in parameters(find(name))), key="spgcl".__eq__)
PRESETS = ("published", "validated", "paper", None, EARLIER)
# Values set by hand that have their own row.
VARIANTS = {("smoothed", "joined=true"): "smoothed, joined"}
# So many trainings of a setting are enough to show it; fewer are shown where there is nothing else.
RETRAININGS = 3
# What a method has to be compared with: features and their smoothed versions, with no training at all.
NO_TRAINING = ("raw", "smoothed", "smoothed, joined")
REFERENCE = "no training"
BOTH_PROBES = {"paper": "paper's probe", "tuned": "tuned probe"}
PROTOCOLS = {**BOTH_PROBES, "predictions": "own predictions"}
Record = dict[str, Any]
Group = tuple[str, str | None, str]


def of_today(records: Iterable[Record]) -> list[Record]:
    """Scores without those of defaults and presets that have changed since, if lines have their settings."""
    return [record for record in records if "settings" not in record or _is_of_today(record)]


def _is_of_today(record: Record) -> bool:
    if record["preset"] not in (None, *presets.PRESETS):
        return True
    named = (record[name] for name in ("dataset", "method", "preset", "given", "seed"))
    return is_current(record, Run("", "scores", *named))


def grouped(records: Iterable[Record]) -> dict[Group, dict[str, list[Record]]]:
    """Trainings by (method, preset, what was set by hand) and graph, the later of two equal ones.

    If a setting was trained on several devices, the one with most retrainings is used.
    """
    latest: dict[tuple[Group, str, str], dict[int, Record]] = defaultdict(dict)
    for record in records:
        group = (record["method"], record["preset"], _given(record))
        latest[group, record["dataset"], record["device"]][record["seed"]] = record
    found: dict[Group, dict[str, list[Record]]] = defaultdict(dict)
    for (group, dataset, device), by_seed in sorted(latest.items(), key=lambda item: str(item[0])):
        trainings = [by_seed[seed] for seed in sorted(by_seed)]
        before = found[group].get(dataset, [])
        if (len(trainings), device != "cpu") > (len(before), bool(before) and before[0]["device"] != "cpu"):
            found[group][dataset] = trainings
    return dict(sorted(found.items(), key=_group_order))


def _given(record: Record) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(record.get("given", {}).items()))


def _group_order(item: tuple[Group, Any]) -> tuple[str, int, str, str]:
    method, preset, given = item[0]
    return method, PRESETS.index(preset) if preset in PRESETS else len(PRESETS), preset or "", given


def score(trainings: Sequence[Record], protocol: str) -> str:
    """Mean test score over retrainings and, if there are several, their standard deviation."""
    tests = [_scored(training, protocol)["test"] for training in trainings]
    return f"{fmean(tests):.2f} ± {pstdev(tests):.2f}" if len(tests) > 1 else f"{tests[0]:.2f}"


def summary_table(records: Sequence[Record]) -> str:
    """The paper, the authors' code and every preset of SP-GCL, under the paper's probe."""
    groups = {
        key: value
        for key, value in grouped(records).items()
        if key[0] == "spgcl" and key[1] in PRESETS and not key[2]
    }
    if not groups:
        return NO_RESULTS
    datasets = [name for name in _order(groups) if any(name in graphs for graphs in groups.values())]
    rows = [
        [
            name,
            *_quoted("spgcl", name),
            *[score(graphs[name], "paper") if name in graphs else "-" for graphs in groups.values()],
        ]
        for name in datasets
    ]
    counts = sorted({len(trainings) for graphs in groups.values() for trainings in graphs.values()})
    number = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    titles = [_title(preset, "") for _, preset, _ in groups]
    auc = [name for name in datasets if metric(name) == "ROC-AUC"]
    measured = f"ROC-AUC on {', '.join(auc)}, accuracy elsewhere" if auc else "accuracy"
    caption = (
        f"Test scores in percent ({measured}) under the paper's probe: mean over splits and full retrainings "
        f'({number}), ± the standard deviation over retrainings. "paper" is the number in the paper; '
        '"authors\' code" is the score of that code in our own run.'
    )
    columns = ["graph", "paper", "authors' code", *titles]
    return f"{caption}\n\n{table(columns, rows)}"


def best_of(
    records: Sequence[Record], protocol: str, presets: Sequence[str | None] = PRESETS
) -> dict[str, dict[str, list[Record]]]:
    """By row and graph, the trainings of the preset, or of the defaults, that is best on validation.

    Settings with fewer than three trainings count where there are no others. A row is a method, or one of its
    variants.
    """

    def rank(trainings: list[Record]) -> tuple[bool, float]:
        return len(trainings) >= RETRAININGS, mean_score(trainings, protocol=protocol, part="validation")

    chosen: dict[str, dict[str, list[Record]]] = defaultdict(dict)
    for (method, preset, given), graphs in grouped(records).items():
        row = VARIANTS.get((method, given)) if given else method
        if preset not in presets or row is None:
            continue
        for name, trainings in graphs.items():
            before = chosen[row].get(name)
            if before is None or rank(trainings) > rank(before):
                chosen[row][name] = trainings
    return dict(chosen)


def method_table(method: str, best: Mapping[str, Mapping[str, list[Record]]]) -> str:
    """The scores of a method and its variants, from `best_of` under the paper's probe."""
    found = [graphs for row, graphs in best.items() if _method_of(row) == method]
    if not found:
        return NO_RESULTS
    rows = []
    for name, graphs in ((name, graphs) for name in entries() for graphs in found if name in graphs):
        trainings = graphs[name]
        cells = [score(trainings, protocol) for protocol in trainings[0]["scores"]]
        if _is_short(method, name, trainings, "paper"):
            cells[0] = f"**{cells[0]}**"
        setting = _title(trainings[0]["preset"], _given(trainings[0]))
        rows.append([name, setting, _quoted(method, name)[0], *cells, str(len(trainings))])
    protocols = [PROTOCOLS[protocol] for protocol in trainings[0]["scores"]]
    return table(["graph", "setting", "paper", *protocols, "retrainings"], rows, text_columns=2)


def side_by_side(records: Sequence[Record], protocol: str) -> str:
    """Methods by graphs under one protocol, the paper's figure in parentheses, as its tables 1 and 2 are.

    On each graph a method is shown with the preset, or the defaults, that is best on validation. SP-GCL has a
    second row, with no more settings searched than the others had.
    """
    chosen = best_of(records, protocol)
    lines = [(row, chosen[row]) for row in sorted(chosen, key=_row_order)]
    if any(record["preset"] == DRAWN for record in records):
        lines.append(("spgcl, equal budget", _equal_budget(records, protocol)))
    sections = []
    for graphs in (HOMOPHILIC, HETEROPHILIC):
        rows = []
        for row, found in lines:
            cells = [_next_to_paper(_method_of(row), name, found.get(name), protocol) for name in graphs]
            if any(cell != "-" for cell in cells):
                rows.append([row, *cells])
        if rows:
            sections.append(table(["method", *graphs], rows))
    return "\n\n".join(sections) or NO_RESULTS


def _equal_budget(records: Sequence[Record], protocol: str) -> dict[str, list[Record]]:
    """SP-GCL's part of `best_of` with no more settings searched than the others had.

    Its defaults are not among them: they were chosen on these graphs, from settings beyond the search.
    """
    equal = [record for record in records if not record.get("further")]
    return best_of(equal, protocol, ("published", "validated", DRAWN)).get("spgcl", {})


def statistics_cells(records: Sequence[Record], protocol: str) -> dict[str, dict[str, list[float]]]:
    """Test scores of every retraining by row and graph, of the rows that need no labels, in order.

    The reference is, on each graph, the row without training that is best on validation. SP-GCL has an equal
    budget.
    """
    chosen = best_of(records, protocol)
    graphs: dict[str, list[Record]] = {}
    for row in NO_TRAINING:
        for name, trainings in chosen.pop(row, {}).items():
            mean = partial(mean_score, protocol=protocol, part="validation")
            if name not in graphs or mean(trainings) > mean(graphs[name]):
                graphs[name] = trainings
    unlabelled = {row: found for row, found in chosen.items() if not find(_method_of(row)).supervised}
    rows = {REFERENCE: graphs, **unlabelled, "spgcl": _equal_budget(records, protocol)}
    return {
        row: {
            name: [_scored(each, protocol)["test"] for each in found[name]]
            for name in (*HOMOPHILIC, *HETEROPHILIC)
            if name in found
        }
        for row, found in rows.items()
        if found
    }


def ranks_table(records: Sequence[Record]) -> str:
    """The rank of SP-GCL, with an equal budget, among the methods without labels, and the best other."""
    found = {}
    for protocol in BOTH_PROBES:
        chosen = best_of(records, protocol)
        unlabelled = {row: chosen[row] for row in chosen if not find(_method_of(row)).supervised}
        found[protocol] = {**unlabelled, "spgcl": _equal_budget(records, protocol)}
    rows = []
    for name in (*HOMOPHILIC, *HETEROPHILIC):
        figures = {method: paper_figure(method, name) for method in ORDER if not find(method).supervised}
        printed = {method: figure.mean for method, figure in figures.items() if figure}
        cells = [_rank(printed)]
        for protocol, methods in found.items():
            means = {
                method: mean_score(graphs[name], protocol)
                for method, graphs in methods.items()
                if name in graphs
            }
            cells += [_rank(means), _first_other(means)]
        rows.append([name, *cells])
    measured = [column for title in BOTH_PROBES.values() for column in (f"rank, {title}", "best other")]
    return table(["graph", "rank in the paper", *measured], rows)


def _rank(scores: Mapping[str, float]) -> str:
    """SP-GCL's rank and how many methods there are."""
    if "spgcl" not in scores:
        return "-"
    return f"{1 + sum(other > scores['spgcl'] for other in scores.values())} of {len(scores)}"


def _first_other(scores: Mapping[str, float]) -> str:
    """The best method but SP-GCL, and by how much SP-GCL is ahead of it."""
    others = {method: score for method, score in scores.items() if method != "spgcl"}
    if "spgcl" not in scores or not others:
        return "-"
    best = max(others, key=lambda method: others[method])
    return f"{best} ({scores['spgcl'] - others[best]:+.1f})"


def _next_to_paper(method: str, name: str, trainings: Sequence[Record] | None, protocol: str) -> str:
    """A cell: the mean score, in bold if it is more than two points below the paper's."""
    if not trainings:
        return "-"
    paper = paper_figure(method, name)
    text = f"{mean_score(trainings, protocol):.1f}" + (f" ({paper.mean:.1f})" if paper else "")
    return f"**{text}**" if _is_short(method, name, trainings, protocol) else text


def mean_score(trainings: Sequence[Record], protocol: str, part: str = "test") -> float:
    """Mean over retrainings."""
    return fmean(_scored(each, protocol)[part] for each in trainings)


def _is_short(method: str, name: str, trainings: Sequence[Record], protocol: str) -> bool:
    """Whether a score is more than two points below the paper's."""
    paper = paper_figure(method, name)
    return paper is not None and mean_score(trainings, protocol) < paper.mean - ALLOWED


def _scored(training: Record, protocol: str) -> dict[str, float]:
    """Scores under a protocol; for supervised methods, those of their own predictions."""
    scores: dict[str, dict[str, float]] = training["scores"]
    return scores.get(protocol) or scores["predictions"]


def _method_of(row: str) -> str:
    """The method of a row: the part before the comma, if it is a variant."""
    return row.partition(",")[0]


def _row_order(row: str) -> tuple[int, str]:
    return (ORDER.index(row) if row in ORDER else -1, row)


def full_table(records: Sequence[Record]) -> str:
    """Every setting that was scored: both probes (or a supervised method's predictions), time, memory."""
    groups = grouped(records)
    rows = [
        [
            method,
            _title(preset, given),
            name,
            trainings[0]["processor"],
            *(score(trainings, protocol) for protocol in BOTH_PROBES),
            str(len(trainings)),
            _seconds(trainings),
            _memory(trainings),
        ]
        for (method, preset, given), graphs in groups.items()
        for name, trainings in graphs.items()
    ]
    columns = ["method", "setting", "graph", "processor", *BOTH_PROBES.values()]
    return table([*columns, "retrainings", "fit s", "peak MiB"], rows, text_columns=4)


def tenths_table(records: Sequence[Record]) -> str:
    """Scores on random splits with a tenth of the nodes labelled, next to those of the method's own paper."""
    groups = grouped(records)
    rows = [
        [
            method,
            name,
            _title(preset, given),
            OWN_PAPER.get((method, name), "-"),
            *(score(graphs[name], protocol) for protocol in BOTH_PROBES),
            str(len(graphs[name])),
        ]
        for name in _order(groups)
        for (method, preset, given), graphs in groups.items()
        if name in graphs
    ]
    columns = ["method", "graph", "setting", "its own paper", *BOTH_PROBES.values(), "retrainings"]
    return table(columns, rows, text_columns=3) if rows else NO_RESULTS


def _seconds(trainings: Sequence[Record]) -> str:
    """Mean time of the trainings that had the machine for themselves."""
    alone = [training["seconds"]["fit"] for training in trainings if training.get("workers", 1) == 1]
    return f"{fmean(alone):.1f}" if alone else "-"


def _memory(trainings: Sequence[Record]) -> str:
    """The largest peak, if it was measured without what the process held before."""
    peaks = [training["peak_mib"] for training in trainings if training.get("peak_mib") is not None]
    return f"{max(peaks):.0f}" if peaks else "-"


def _title(preset: str | None, given: str) -> str:
    named = preset is not None and not preset.startswith("defaults")
    return (f"preset `{preset}`" if named else preset or "defaults") + (f", {given}" if given else "")


def _quoted(method: str, name: str) -> list[str]:
    """The paper's number for a method, and the score of the authors' code, which has SP-GCL only."""
    paper = paper_figure(method, name)
    authors = AUTHORS_CODE.get(name) if method == "spgcl" else None
    figures = [paper.mean if paper else None, authors]
    return ["-" if figure is None else f"{figure:.2f}" for figure in figures]


def metric(name: str) -> str:
    """The metric of a data set, in words."""
    return "ROC-AUC" if name in entries() and entries()[name].metric == "roc_auc" else "accuracy"


def _order(groups: dict[Group, dict[str, list[Record]]]) -> list[str]:
    present = {name for graphs in groups.values() for name in graphs}
    return [*[name for name in entries() if name in present], *sorted(present - set(entries()))]
