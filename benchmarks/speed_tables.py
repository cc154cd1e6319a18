"""Tables of time and memory, from results/speed, memory, scale, paired and walks.jsonl."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

from markdown import NO_RESULTS, table
from scipy.stats import t as student
from timing.phases import PHASES
from timing.speed import OURS

Record = dict[str, Any]

# Milliseconds per step of the authors' code on one NVIDIA H200. The graphs in AT_LEAST were timed without its
# sampling, which adds to it.
AUTHORS_STEP = {
    "cora": 11.8,
    "citeseer": 15.5,
    "pubmed": 28.3,
    "chameleon": 36.3,
    "squirrel": 47.9,
    "actor": 18.7,
    "twitch-de": 29.6,
    "amazon-photo": 27.2,
    "amazon-computers": 45.4,
    "coauthor-cs": 27.8,
    "coauthor-physics": 48.8,
}
AT_LEAST = {"actor", "twitch-de", "amazon-photo", "amazon-computers", "coauthor-cs", "coauthor-physics"}
AUTHORS_PROCESSOR = "NVIDIA H200"
# Table 3 of the paper, SP-GCL, GB; synthetic graphs are next to the real ones of their size.
PAPER_MEMORY = {
    "coauthor-cs": 2.07,
    "coauthor-physics": 3.21,
    "genius-size": 6.24,
    "twitch-gamers-size": 22.15,
}


def shown(records: Sequence[Record]) -> list[Record]:
    """What documents show: one machine per kind of device, the last, in the number format that `fit` uses."""
    last = {record["device"]: machine_of(record) for record in records}
    return [
        record
        for record in records
        if machine_of(record) == last[record["device"]]
        and (record["device"] == "cpu" or record.get("precision") != "float32")
    ]


def by_machine(records: Iterable[Record]) -> dict[str, list[Record]]:
    """The latest record of every graph and setting, by machine; graphs in the paper's order, then others."""
    found: dict[str, dict[tuple[str, str], Record]] = defaultdict(dict)
    for record in records:
        found[machine_of(record)][record.get("dataset", ""), given_of(record)] = record
    order = {graph: index for index, graph in enumerate(AUTHORS_STEP)}

    def position(key: tuple[str, str]) -> tuple[int, str, str]:
        return order.get(key[0], len(order)), *key

    return {
        machine: [latest[key] for key in sorted(latest, key=position)] for machine, latest in found.items()
    }


def machine_of(record: Record) -> str:
    """A machine in words; threads matter if the CPU does the work."""
    if record["device"] != "cpu":
        return str(record["processor"])
    threads = record["threads"]
    return f"{record['processor']}, {threads} thread{'s' if threads > 1 else ''}"


def given_of(record: Record) -> str:
    """What was set by hand and, if there is a choice, the number format of matrix products."""
    given = [f"{name}={value}" for name, value in sorted(record["given"].items())]
    formats = [record["precision"]] if "precision" in record and record["device"] != "cpu" else []
    return ", ".join([*given, *formats])


def speed_summary(records: Sequence[Record]) -> str:
    """On the machine of the authors' code: its steps, those of other methods and ours, and our whole runs."""
    steps, whole_runs = _current(records).get(AUTHORS_PROCESSOR, []), _whole_runs(records)
    whole = {(run["dataset"], given_of(run)): run for run in whole_runs.get(AUTHORS_PROCESSOR, [])}
    subjects = {(record["dataset"], given_of(record)): record["subjects"] for record in steps}
    rows = []
    for graph in AUTHORS_STEP:
        every_row, pool = ((graph, given) for given in ("tf32", "batch_norm_rows=pool, tf32"))
        cells = [_step(subjects.get(every_row, {}).get(name)) for name in ("grace", "bgrl", OURS)]
        cells.append(_step(subjects.get(pool, {}).get(OURS)))
        run = whole.get(pool)
        cells.append(f"{run['end_to_end']['seconds']['total']:.1f}" if run else "-")
        if any(cell != "-" for cell in cells):
            rows.append([graph, _authors(graph), *cells])
    columns = ["authors' code", "GRACE", "BGRL", "SP-GCL", "SP-GCL, pool", "fit and eval, s"]
    return table(["graph", *columns], rows) if rows else NO_RESULTS


def _current(records: Iterable[Record]) -> dict[str, list[Record]]:
    """The latest records; one that includes the reference, or more methods, counts before all without."""
    return by_machine(sorted(records, key=lambda record: ("ratios" in record, len(record["subjects"]))))


def _whole_runs(records: Iterable[Record]) -> dict[str, list[Record]]:
    return by_machine(record for record in records if "end_to_end" in record)


def speed_section(records: Sequence[Record]) -> str:
    """For every machine: phases next to the reference, a step next to its floor, end to end."""
    parts = []
    latest_of, whole_runs = _current(records), _whole_runs(records)
    for machine in dict.fromkeys(map(machine_of, records)):
        latest = latest_of[machine]
        parts.append(f"### {machine}\n\n{_about(latest)}")
        if any(OURS in record["subjects"] for record in latest):
            parts.append(phase_table(latest))
        parts.append(f"One step, milliseconds:\n\n{step_table(latest)}")
        whole = whole_runs.get(machine)
        if whole:
            parts.append(f"From end to end, after import:\n\n{end_to_end_table(whole)}")
    return "\n\n".join(parts) or NO_RESULTS


def _about(records: Sequence[Record]) -> str:
    rounds = sorted({record["rounds"] for record in records})
    versions = sorted({f"torch {record['versions']['torch']}" for record in records})
    dates = sorted({record["date"] for record in records})
    span = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    return f"Medians of {' or '.join(map(str, rounds))} rounds; {', '.join(versions)}; {span}."


def phase_table(records: Sequence[Record]) -> str:
    """Ours by phase and, in parentheses, how many times longer the reference takes."""
    timed = [record for record in records if OURS in record["subjects"]]
    rows = [
        [record["dataset"], given_of(record) or "-", *[_phase(record, phase) for phase in PHASES]]
        for record in timed
    ]
    columns = [f"{phase} ms" if phase == "step" else f"{phase} s" for phase in PHASES]
    return table(["graph", "set", *columns], rows, text_columns=2)


def _phase(record: Record, phase: str) -> str:
    seconds = record["subjects"][OURS]["seconds"].get(phase)
    if seconds is None:
        return "-"
    shown = f"{1000 * seconds:.2f}" if phase == "step" else f"{seconds:.3f}"
    ratio = record.get("ratios", {}).get(phase)
    return shown if ratio is None else f"{shown} ({ratio:.1f}x)"


def step_table(records: Sequence[Record]) -> str:
    """A step of every subject, the authors' if it was timed on this machine, and the floor."""
    names = list(dict.fromkeys(name for record in records for name in record["subjects"]))
    formats = list(dict.fromkeys(name for record in records for name in _floor(record, "seconds")))
    authors = any(record["processor"] == AUTHORS_PROCESSOR for record in records)
    rows = []
    for record in records:
        subjects, floors = record["subjects"], _floor(record, "seconds")
        cells = [_step(subjects.get(name)) for name in names]
        if authors:
            cells.append(_authors(record["dataset"]))
        cells += [f"{1000 * floors[name]:.2f}" if name in floors else "-" for name in formats]
        ratios = _floor(record, "ratios")
        cells += [f"{ratios[name]:.1f}" if name in ratios else "-" for name in formats]
        rows.append([record["dataset"], given_of(record) or "-", *cells])
    columns = [*names, *(["authors' code"] if authors else [])]
    columns += [f"floor, {name}" for name in formats] + [f"{OURS} / floor, {name}" for name in formats]
    return table(["graph", "set", *columns], rows, text_columns=2)


def _floor(record: Record, part: str) -> Mapping[str, float]:
    values: Mapping[str, float] = (record.get("floor") or {}).get(part, {})
    return values


def _step(subject: Record | None) -> str:
    return "-" if subject is None else f"{1000 * subject['seconds']['step']:.2f}"


def _authors(dataset: str) -> str:
    if dataset not in AUTHORS_STEP:
        return "-"
    return f"{'> ' if dataset in AT_LEAST else ''}{AUTHORS_STEP[dataset]:.1f}"


def end_to_end_table(records: Sequence[Record]) -> str:
    """Seconds of `spgcl fit` and `spgcl eval`, and peak memory."""
    rows = []
    for record in records:
        seconds = record["end_to_end"]["seconds"]
        parts = [f"{seconds[name]:.2f}" for name in ("fit", "eval", "total", "import", "device")]
        rows.append([record["dataset"], given_of(record) or "-", *parts, f"{seconds['peak_mib']:.0f}"])
    columns = ["fit s", "eval s", "both s", "import s (apart)", "device s (apart)", "peak MiB"]
    return table(["graph", "set", *columns], rows, text_columns=2)


def memory_section(records: Sequence[Record]) -> str:
    """Peak memory by machine and graph, next to the paper's."""
    parts = []
    for machine, latest in by_machine(records).items():
        names = list(dict.fromkeys(name for record in latest for name in record["subjects"]))
        rows = []
        for record in latest:
            paper = PAPER_MEMORY.get(record["dataset"])
            cells = [_peak(record["subjects"].get(name)) for name in names]
            rows.append(
                [record["dataset"], given_of(record) or "-", *cells, "-" if paper is None else f"{paper:.2f}"]
            )
        columns = ["graph", "set", *[f"{name} MiB" for name in names], "paper GB"]
        kind = "resident" if latest[0]["device"] == "cpu" else "allocated"
        parts.append(f"### {machine}, {kind}\n\n{table(columns, rows, text_columns=2)}")
    return "\n\n".join(parts) or NO_RESULTS


def _peak(subject: Record | None) -> str:
    if subject is None:
        return "-"
    return "out of memory" if subject["peak_mib"] is None else f"{subject['peak_mib']:.0f}"


def scale_section(records: Sequence[Record]) -> str:
    """Seconds by number of nodes, and how much more the largest takes."""
    parts = []
    phases = ("prepare", "step", "embed")
    for machine, latest in by_machine(records).items():
        for record in latest:
            sizes = record["sizes"]
            rows = [
                [
                    f"{one['num_nodes']:,}",
                    f"{one['num_edges']:,}",
                    *[f"{one['seconds'][phase]:.4g}" for phase in phases],
                    f"{_reading_seconds(one):.4g}",
                    f"{one['peak_mib']:.0f}",
                ]
                for one in sizes
            ]
            growth = record["growth"]
            times = [f"x {growth[phase]:.2f}" if phase in growth else "-" for phase in phases]
            reading = f"x {_reading_seconds(sizes[-1]) / _reading_seconds(sizes[0]):.2f}"
            rows.append(["largest over smallest", f"x {growth['nodes_and_edges']:.0f}", *times, reading, "-"])
            seconds = [f"{phase} s" for phase in (*phases, "a row per entry")]
            given = f", {given_of(record)}" if record["given"] else ""
            shown = table(["nodes", "edges", *seconds, "peak MiB"], rows)
            parts.append(f"### {machine}{given}\n\n{shown}")
    return "\n\n".join(parts) or NO_RESULTS


def _reading_seconds(size: Record) -> float:
    """What reading one row at random takes for every entry of the adjacency, loops among them."""
    entries: int = 2 * size["num_edges"] + size["num_nodes"]
    return entries * float(size["random_row_seconds"])


def paired_section(records: Sequence[Record]) -> str:
    """Test scores of fast training less those of plain training under the same seeds, by graph."""
    return _paired_table(records, "plain", ("fast", "pool"))


def sized_section(paired: Sequence[Record], scores: Sequence[Record]) -> str:
    """Test scores of the defaults for large graphs less those of the usual ones, under the same seeds."""
    recorded = [
        {**line, "variant": "defaults", "test": line["scores"]["paper"]["test"]}
        for line in scores
        if line["method"] == "spgcl" and line["preset"] is None and not line["given"] and "scores" in line
    ]
    # The later ones count: those of the same machine.
    return _paired_table([*recorded, *paired], "defaults", ("sized", "narrow"))


def _paired_table(records: Sequence[Record], base: str, variants: Sequence[str]) -> str:
    scores: dict[str, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for record in records:
        scores[record["dataset"]][record["variant"]][record["seed"]] = record["test"]
    rows = []
    for dataset, by_variant in scores.items():
        plain = by_variant[base]
        for variant in variants:
            found = by_variant[variant]
            pairs = [(plain[seed], found[seed]) for seed in sorted(plain.keys() & found.keys())]
            if len(pairs) > 1:
                before, after = (fmean(side) for side in zip(*pairs, strict=True))
                less, more = _interval([fast - slow for slow, fast in pairs])
                cells = [
                    f"{before:.2f}",
                    f"{after:.2f}",
                    f"{after - before:+.2f}",
                    f"{less:+.2f} to {more:+.2f}",
                ]
                rows.append([dataset, variant, str(len(pairs)), *cells])
    columns = ["graph", "variant", "seeds", base, "variant's", "difference", "95% interval"]
    return table(columns, rows, text_columns=2) if rows else NO_RESULTS


def _interval(differences: Sequence[float]) -> tuple[float, float]:
    """Student's interval of the mean."""
    middle, count = fmean(differences), len(differences)
    half = student.ppf(0.975, count - 1) * stdev(differences) / count**0.5
    return middle - half, middle + half


def walks_section(records: Sequence[Record]) -> str:
    """Seconds of random walks, the latest of every graph, bias and processor."""
    keys = ("dataset", "processor", "walks", "length", "p", "q")
    latest = {tuple(record[key] for key in keys): record["seconds"] for record in records}
    rows = [
        [name, processor, f"{walks} of {length} nodes", f"{p:g}", f"{q:g}", f"{seconds:.2f}"]
        for (name, processor, walks, length, p, q), seconds in latest.items()
    ]
    columns = ["graph", "processor", "from every node", "p", "q", "seconds"]
    return table(columns, rows, text_columns=3) if rows else NO_RESULTS


# By the name of the results file; the blocks of documents have the same names.
SECTIONS = {
    "speed": speed_section,
    "memory": memory_section,
    "scale": scale_section,
    "paired": paired_section,
    "walks": walks_section,
}
