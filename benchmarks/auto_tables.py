"""Tables about auto: beside other methods, part by part, on drawn graphs, and with its verdicts."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from markdown import NO_RESULTS, table
from regret_figure import regret_of
from score_tables import BOTH_PROBES, Group, grouped

from spgcl.datasets.entries import entries
from spgcl.evaluation.verdict import edges_say, most_reliable

Record = dict[str, Any]
# Defaults that train nothing, and their values set by hand.
WITHOUT_TRAINING = (
    ("raw", ""),
    ("smoothed", ""),
    ("smoothed", "joined=true"),
    ("untrained", ""),
    ("fastrp", ""),
)


def beside_table(scores: Sequence[Record]) -> str:
    """SP-GCL's defaults, the best of the methods without training, and auto, under both probes."""
    groups = grouped(scores)
    rows = []
    for name in filter(_ours(groups).__contains__, entries()):
        cells = [name]
        for probe in ("tuned", "paper"):
            others = [_mean(groups, *choice, name, probe) for choice in WITHOUT_TRAINING]
            best = max((value for value in others if value is not None), default=None)
            rival, own = (_mean(groups, method, "", name, probe) for method in ("spgcl", "auto"))
            cells += [_cell(rival), _cell(best), _cell(own)]
        rows.append(cells)
    columns = ["graph"]
    for probe in ("tuned probe", "paper's probe"):
        columns += [f"{probe}: SP-GCL", "best without training", "auto"]
    return f"{table(columns, rows)}\n\n{ahead_text(scores)}" if rows else NO_RESULTS


def ahead_text(scores: Sequence[Record]) -> str:
    """How far auto is ahead of SP-GCL's defaults under each probe: on the mean, and where it is least."""
    groups, parts = grouped(scores), []
    for probe in ("tuned", "paper"):
        gains = _gains(groups, probe)
        if not gains:
            return NO_RESULTS
        worst = min(gains, key=lambda name: gains[name])
        mean, least = fmean(gains.values()), gains[worst]
        parts.append(f"{mean:+.2f} points under the {BOTH_PROBES[probe]} (least on {worst}, {least:+.2f})")
    return f"Auto against SP-GCL's defaults, mean over graphs: {', '.join(parts)}."


def _ours(groups: Mapping[Group, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = groups.get(("auto", None, ""), {})
    return found


def _gains(groups: Mapping[Group, Any], probe: str) -> dict[str, float]:
    """Points of auto over SP-GCL's defaults by graph."""
    pairs = {
        name: [_mean(groups, method, "", name, probe) for method in ("auto", "spgcl")]
        for name in _ours(groups)
    }
    return {
        name: own - rival for name, (own, rival) in pairs.items() if own is not None and rival is not None
    }


def _mean(groups: Mapping[Group, Any], method: str, given: str, name: str, probe: str) -> float | None:
    """Mean test score of a method's defaults, with values set by hand."""
    trainings = groups.get((method, None, given), {}).get(name)
    return fmean(one["scores"][probe]["test"] for one in trainings) if trainings else None


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def ablation_table(lines: Sequence[Record]) -> str:
    """Validation scores of variants as differences from auto, and their mean over graphs."""
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for line in lines:
        found[line["dataset"]][line["variant"]] = line["validation"]
    whole = {name: found[name] for name in entries() if "auto" in found.get(name, {})}
    if not whole:
        return NO_RESULTS
    variants = list(next(iter(whole.values())))[1:]
    rows = [
        [name, f"{scores['auto']:.2f}", *[_difference(scores, variant) for variant in variants]]
        for name, scores in whole.items()
    ]
    gains = {
        variant: [scores[variant] - scores["auto"] for scores in whole.values() if variant in scores]
        for variant in variants
    }
    means = [f"{fmean(values):+.2f}" for values in gains.values()]
    average = f"{fmean(scores['auto'] for scores in whole.values()):.2f}"
    return table(["graph", "auto", *variants], [*rows, ["mean", average, *means]])


def _difference(scores: Mapping[str, float], variant: str) -> str:
    return f"{scores[variant] - scores['auto']:+.2f}" if variant in scores else "-"


def grid_text(lines: Sequence[Record]) -> str:
    """How far auto is behind the best of its rivals, in all and by homophily and signal."""
    if not lines:
        return NO_RESULTS
    regrets = {line["graph"]: regret_of(line) for line in lines}
    within = 100 * fmean(regret <= 1 for regret in regrets.values())
    trained = sum("spgcl" in line["scores"] for line in lines)
    error = (within * (100 - within) / len(lines)) ** 0.5
    words = (
        f"On {len(lines)} graphs, SP-GCL trained on {trained} of them, the mean regret is "
        f"{fmean(regrets.values()):.2f} points; auto is within one point of the best of the others, or "
        f"ahead, on {within:.1f} % (standard error {error:.1f}). Mean regret, with the number of graphs:"
    )
    cells: dict[tuple[float, float], list[float]] = defaultdict(list)
    for line in lines:
        parameters = line["parameters"]
        cells[parameters["homophily"], parameters["signal"]].append(regrets[line["graph"]])
    signals = sorted({signal for _, signal in cells})
    rows = [
        [f"{homophily:g}", *[_regret_cell(cells.get((homophily, signal), [])) for signal in signals]]
        for homophily in sorted({homophily for homophily, _ in cells})
    ]
    cells_table = table(["homophily", *[f"signal {signal:g}" for signal in signals]], rows)
    behind = sorted((line for line in lines if regret_of(line) > 1), key=regret_of, reverse=True)
    return "\n\n".join([words, cells_table, *([_behind_table(behind)] if behind else [])])


def _behind_table(lines: Sequence[Record]) -> str:
    """Graphs on which auto is behind by more than a point: what they are, and the scores."""
    kinds = ("num_nodes", "num_classes", "average_degree", "homophily", "num_features", "signal")
    rivals = ("raw", "smoothed", "joined", "spgcl")
    rows = []
    for line in lines:
        tests = {name: scores["test"] for name, scores in line["scores"].items()}
        shown = [_cell(tests.get(name)) for name in (*rivals, "auto")]
        drawn = [f"{line['parameters'][kind]:g}" for kind in kinds]
        rows.append([str(line["graph"]), *drawn, f"{line['chance']:.0f}", *shown])
    columns = ["graph", "nodes", "classes", "degree", "homophily", "columns", "signal", "chance"]
    return f"Where it is further behind:\n\n{table([*columns, *rivals, 'auto'], rows)}"


def _regret_cell(regrets: Sequence[float]) -> str:
    return f"{fmean(regrets):.1f} ({len(regrets)})" if regrets else "-"


def few_table(lines: Sequence[Record]) -> str:
    """Auto, auto in 512 columns and the best of the methods without training, by labels per class."""
    found: dict[str, dict[int, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    own = ("auto", "auto, 512 columns")
    measured = {line["dataset"] for line in lines if line["method"] in own}
    for line in lines:
        if line["dataset"] in measured:
            found[line["dataset"]][line["labels_per_class"]][line["method"]] = line["test"]
    counts = sorted({line["labels_per_class"] for line in lines})
    rows = []
    for name in filter(found.__contains__, entries()):
        cells = [name]
        for count in counts:
            tests = found[name].get(count, {})
            best = max((test for method, test in tests.items() if method not in own), default=None)
            cells += [*[_cell(tests.get(method)) for method in own], _cell(best)]
        rows.append(cells)
    kinds = ("auto", "512 columns", "best other")
    columns = ["graph", *[f"{count}: {kind}" for count in counts for kind in kinds]]
    return table(columns, rows) if rows else NO_RESULTS


def choosing_table(lines: Sequence[Record], scores: Sequence[Record]) -> str:
    """What is known of every graph without labels, beside the scores of the choices."""
    latest = {line["dataset"]: line for line in lines}
    groups = grouped(scores)
    choices = (("raw", ""), ("smoothed", ""), ("spgcl", ""), ("auto", ""))
    rows = []
    for name in filter(latest.__contains__, entries()):
        channels = latest[name]["channels"]
        best, said = most_reliable(channels), edges_say(channels)
        edges = f"say {said}" if said in ("less", "nothing") else said
        tests = [_mean(groups, method, given, name, "tuned") for method, given in choices]
        numbers = [f"{channels[channel]['reliability']:.2f}" for channel in ("own", best)]
        rows.append([name, edges, *numbers, *map(_cell, tests)])
    columns = ["graph", "edges", "own features", "best nearby", *[method for method, _ in choices]]
    return table(columns, rows, text_columns=2) if rows else NO_RESULTS
