"""How results become tables: ours, the paper's and the difference."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean, pstdev
from typing import Any

from spgcl.datasets.entries import entries
from spgcl.evaluation.scores import PROTOCOLS
from spgcl.experiments.effects import effect_tables
from spgcl.experiments.paper import printed, printed_score
from spgcl.experiments.render import Cell, Strong, Table
from spgcl.experiments.results import Results
from spgcl.methods import find, parameters, resolved_settings
from spgcl.methods.presets import known_graphs

ABSENT = "-"
# Behind a score of fewer retrainings than planned.
FEWER = "†"
Record = Mapping[str, Any]


def tables_of(results: Results) -> list[Table]:
    """The tables of a plan."""
    return LAYOUTS[results.plan.layout](results)


def mean_test(lines: Sequence[Record], probe: str) -> float:
    """Mean test score of trainings under a probe, or of their own predictions."""
    return fmean(_scored(line, probe)["test"] for line in lines)


def _scored(line: Record, probe: str) -> dict[str, float]:
    scores: dict[str, dict[str, float]] = line["scores"]
    return scores.get(probe) or scores["predictions"]


def score_tables(results: Results) -> list[Table]:
    """Rows by graphs, one table per probe; the best row without labels is in bold."""
    plan = results.plan
    probes = plan.options.get("probes", ("paper", "tuned"))
    return [_score_table(results, probe) for probe in probes]


def _score_table(results: Results, probe: str) -> Table:
    plan = results.plan
    cells = {(row, graph): results.of_cell(row, graph) for row in plan.row_names for graph in plan.graphs}
    measured = [graph for graph in plan.graphs if any(cells[row, graph] for row in plan.row_names)]
    best = {graph: _best(cells, plan.row_names, graph, probe) for graph in plan.graphs}
    wanted = {row: _wanted(results, row) for row in plan.row_names}
    rows = []
    for row in plan.row_names:
        line: list[Cell] = [row]
        for graph in plan.graphs:
            lines, paper = cells[row, graph], printed_score(plan, row, graph)
            mark = FEWER if 0 < len(lines) < wanted[row] else ""
            text = _beside(lines, paper, probe) + mark
            line.append(Strong(text) if lines and mean_test(lines, probe) == best[graph] else text)
        rows.append([*line, _mean_cell(cells, results, row, measured, probe)])
    shown = " (paper's, difference)" if any("(" in str(cell) for row in rows for cell in row[1:]) else ""
    few = [f"{FEWER} fewer retrainings than planned."] if FEWER in str(rows) else []
    return Table(
        f"{plan.title}, {PROTOCOLS[probe]}: mean ± deviation over retrainings{shown}. In bold: the best "
        "without labels.",
        ["method", *plan.graphs, "mean"],
        rows,
        [*few, *plan.notes],
    )


def _best(
    cells: Mapping[tuple[str, str], Sequence[Record]], rows: Iterable[str], graph: str, probe: str
) -> float:
    means = [
        mean_test(lines, probe)
        for row in rows
        if (lines := cells[row, graph]) and not find(lines[0]["method"]).supervised
    ]
    return max(means, default=0.0)


def _wanted(results: Results, row: str) -> int:
    """How many trainings the plan has of a row per graph."""
    return 1 + max(run.seed for run in results.plan.runs if run.row == row)


def _beside(lines: Sequence[Record], paper: float | None, probe: str) -> str:
    if not lines:
        return ABSENT if paper is None else f"{ABSENT} ({paper:.1f})"
    tests = [_scored(line, probe)["test"] for line in lines]
    text = f"{fmean(tests):.1f}" + (f" ± {pstdev(tests):.1f}" if len(tests) > 1 else "")
    return text if paper is None else f"{text} ({paper:.1f}, {fmean(tests) - paper:+.1f})"


def _mean_cell(
    cells: Mapping[tuple[str, str], Sequence[Record]],
    results: Results,
    row: str,
    measured: Sequence[str],
    probe: str,
) -> str:
    """The mean over the graphs that were measured, if the row has all of them, and the paper's over these."""
    if not measured or not all(cells[row, graph] for graph in measured):
        return ABSENT
    ours = fmean(mean_test(cells[row, graph], probe) for graph in measured)
    papers = [printed_score(results.plan, row, graph) for graph in measured]
    known = [figure for figure in papers if figure is not None]
    if len(known) < len(papers):
        return f"{ours:.1f}"
    return f"{ours:.1f} ({fmean(known):.1f}, {ours - fmean(known):+.1f})"


def memory_tables(results: Results) -> list[Table]:
    """Methods by graphs: peak memory in GB and milliseconds per step."""
    plan, rows = results.plan, []
    drawn = {line["dataset"] for run in plan.runs if (line := results.of(run)) and line["synthetic"]}
    for row in plan.row_names:
        cells = [row]
        for graph in plan.graphs:
            lines, paper = results.of_cell(row, graph), printed(plan.name).get(row, {}).get(graph)
            cells += _memory_cells(lines, paper)
        rows.append(cells)
    names = [f"{graph} (drawn)" if graph in drawn else graph for graph in plan.graphs]
    columns = ["method", *(f"{name}, {unit}" for name in names for unit in ("GB", "ms per step"))]
    lines = [line for run in plan.runs if (line := results.of(run))]
    where = sorted({f"{line['processor']} ({line['device']})" for line in lines})
    notes = [f"Measured on {', '.join(where)}."] if where else []
    return [Table(f"{plan.title} (paper's GB, ratio)", columns, rows, [*notes, *plan.notes])]


def _memory_cells(lines: Sequence[Record], paper: Any) -> list[str]:
    text = "" if paper is None else f" ({paper})"
    if not lines:
        return [f"{ABSENT}{text}", ABSENT]
    line = lines[-1]
    if line["peak_mib"] is None:
        return [f"OOM{text}", ABSENT]
    # The paper's GB are taken for GiB, which tools print as GB.
    peak = line["peak_mib"] / 1024
    if isinstance(paper, float):
        text = f" ({paper:.2f}, {peak / paper:.2f})"
    return [f"{peak:.2f}{text}", f"{line['ms_per_step']:.2f}"]


def homophily(lines: Sequence[Record], *, end: bool) -> list[float]:
    """Homophily of the transformed graph of every training, at its end or at its start."""
    return [line["observations"][-1 if end else 0]["transformed_homophily"] for line in lines]


def end_tables(results: Results) -> list[Table]:
    """Graphs by what is known of the transformed graph at the end of training, as in table 4."""
    return [_homophily_table(results, ends=(True,))]


def start_tables(results: Results) -> list[Table]:
    """The same at the start, as in table 5, with the end beside it."""
    return [_homophily_table(results, ends=(False, True))]


def _homophily_table(results: Results, ends: Sequence[bool]) -> Table:
    plan, rows = results.plan, []
    for graph in plan.graphs:
        lines = results.of_cell(plan.row_names[0], graph)
        of_graph = [f"{lines[0]['edge_homophily']:.3f}" if lines else ABSENT]
        cells = [graph, *of_graph]
        for end in ends:
            paper = printed("table4" if end else "table5").get(graph)
            cells += _homophily_cells(homophily(lines, end=end), paper)
        rows.append([*cells, str(len(lines))])
    columns = ["graph", "edge homophily of the graph"]
    for word in ("end" if end else "start" for end in ends):
        columns += [f"{word}: mean ± std", "min to max", "paper", "difference"]
    return Table(plan.title, [*columns, "trainings"], rows, plan.notes)


def _homophily_cells(found: Sequence[float], paper: Mapping[str, float] | None) -> list[str]:
    quoted = ABSENT if paper is None else f"{paper['mean']:.3f} ± {paper['std']:.4f}"
    if not found:
        return [ABSENT, ABSENT, quoted, ABSENT]
    mean = fmean(found)
    difference = ABSENT if paper is None else f"{mean - paper['mean']:+.3f}"
    return [f"{mean:.3f} ± {pstdev(found):.4f}", f"{min(found):.3f} to {max(found):.3f}", quoted, difference]


def weight_norms(line: Record) -> list[float]:
    """The sum of the squared weights of every layer after training."""
    found = line["observed"]
    return [found[name] for name in sorted(found) if name.startswith("weight_norm")]


def norm_tables(results: Results) -> list[Table]:
    """Settings by graphs: accuracy and the sum of squared weights of every layer."""
    plan, rows = results.plan, []
    for row in plan.row_names:
        cells = [row]
        for graph in plan.graphs:
            lines, paper = results.of_cell(row, graph), printed(plan.name).get(row, {}).get(graph, {})
            quoted = _norms(paper["norms"]) if paper else ""
            ours = _norms([fmean(each) for each in zip(*map(weight_norms, lines), strict=True)])
            cells += [
                _beside(lines, paper.get("accuracy"), "paper"),
                (ours if lines else ABSENT) + (f" ({quoted})" if quoted else ""),
            ]
        rows.append(cells)
    columns = ["setting", *(f"{graph}, {what}" for graph in plan.graphs for what in ("score", "norms"))]
    return [Table(f"{plan.title} (paper's in parentheses)", columns, rows, plan.notes)]


def _norms(norms: Sequence[float]) -> str:
    return ", ".join(f"{norm:.0f}" for norm in norms)


def data_tables(results: Results) -> list[Table]:
    """Graphs by size and homophily; with the reason where the paper has another figure."""
    plan, rows, why = results.plan, [], []
    columns: list[str] = []
    for graph in plan.graphs:
        lines = results.of_cell(plan.row_names[0], graph)
        if not lines:
            continue
        figures = lines[0]["figures"]
        columns = list(figures)
        rows.append([graph, *(_figure(figure) for figure in figures.values())])
        why += [
            f"{graph}, {name.replace('_', ' ')}: {figure['why']}."
            for name, figure in figures.items()
            if figure["why"]
        ]
    known = [name for name in plan.graphs if name in entries() and name not in {row[0] for row in rows}]
    absent = [f"Not measured, as the files are missing: {', '.join(known)}."] if known else []
    return [
        Table(plan.title, ["graph", *(name.replace("_", " ") for name in columns)], rows, [*absent, *why])
    ]


def _figure(figure: Mapping[str, Any]) -> str:
    loaded, paper = figure["loaded"], figure["paper"]
    text = f"{loaded:,}" if isinstance(loaded, int) else f"{loaded:.3f}"
    return text if paper is None or not figure["why"] else f"{text} ({paper:,})"


def parameter_tables(results: Results) -> list[Table]:
    """Graphs by the hyper-parameters of the published code, the paper's beside them."""
    plan, paper, rows = results.plan, printed(results.plan.name), []
    columns: Mapping[str, int] = plan.view["columns"]
    for graph in plan.graphs:
        known = graph in known_graphs("published", "spgcl")
        settings = resolved_settings("spgcl", "published", graph, {}) if known else {}
        rows.append(
            [graph, *(_setting(settings.get(name), paper[graph][index]) for name, index in columns.items())]
        )
    return [Table(plan.title, ["graph", *(name.replace("_", " ") for name in columns)], rows, plan.notes)]


def _setting(ours: Any, paper: Any) -> str:
    if ours is None:
        return f"{ABSENT} ({paper:g})"
    return f"{ours:g}" if ours == paper else f"{ours:g} ({paper:g})"


def augmentation_tables(results: Results) -> list[Table]:
    """Methods by what the paper says and what ours does, with the defaults of its hyper-parameters."""
    plan, quoted, rows = results.plan, printed(results.plan.name), []
    for method, ours in plan.view["rows"].items():
        defaults = {name: parameters(find(method))[name].default for name in ours["parameters"]}
        rows.append(
            [
                method,
                *quoted.get(method, [ABSENT, ABSENT]),
                *(ours.get(kind, ABSENT) for kind in ("topology", "features")),
                ", ".join(f"{name}={value}" for name, value in defaults.items()) or ABSENT,
            ]
        )
    columns = ["method", "paper: topology", "paper: features", "here: topology", "here: features"]
    return [Table(plan.title, [*columns, "hyper-parameters"], rows, plan.notes, text_columns=6)]


def sweep_tables(results: Results) -> list[Table]:
    """Graphs by the values of a hyper-parameter, and how far apart the best and the worst mean are."""
    plan, rows = results.plan, []
    for graph in plan.graphs:
        cells = [results.of_cell(row, graph) for row in plan.row_names]
        means = [mean_test(lines, "paper") for lines in cells if lines]
        spread = f"{max(means) - min(means):.1f}" if means else ABSENT
        rows.append([graph, *(_beside(lines, None, "paper") for lines in cells), spread])
    return [Table(plan.title, ["graph", *plan.row_names, "best - worst"], rows, plan.notes)]


def curve(lines: Sequence[Record], name: str) -> tuple[list[int], list[list[float]]]:
    """A curve of trainings: steps, and at each of them the value of every training."""
    found: dict[int, list[float]] = {}
    for line in lines:
        for point in line["observations"]:
            if name in point:
                found.setdefault(int(point["step"]), []).append(point[name])
    return list(found), list(found.values())


def curve_tables(results: Results) -> list[Table]:
    """Graphs by curves: the mean at the first and the last observation, and halfway."""
    plan, rows = results.plan, []
    for graph in plan.graphs:
        lines = results.of_cell(plan.row_names[0], graph)
        for name, title in plan.view["curves"].items():
            steps, values = curve(lines, name)
            chosen = sorted({0, len(steps) // 2, len(steps) - 1}) if steps else []
            points = [f"{fmean(values[index]):.3f} (step {steps[index]})" for index in chosen]
            rows.append([graph, title, *(points + [ABSENT] * 3)[:3], str(len(lines))])
    columns = ["graph", "curve", "first", "halfway", "last", "trainings"]
    return [Table(plan.title, columns, rows, plan.notes, text_columns=2)]


LAYOUTS: dict[str, Callable[[Results], list[Table]]] = {
    "scores": score_tables,
    "memory": memory_tables,
    "homophily_at_end": end_tables,
    "homophily_at_start": start_tables,
    "norms": norm_tables,
    "data": data_tables,
    "parameters": parameter_tables,
    "augmentations": augmentation_tables,
    "sweep": sweep_tables,
    "curves": curve_tables,
    "audit": effect_tables,
}
