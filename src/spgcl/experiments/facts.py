"""Tables of facts, for which nothing is trained: graphs, settings, augmentations."""

from collections.abc import Mapping
from typing import Any

from spgcl.datasets.entries import entries
from spgcl.experiments.paper import printed
from spgcl.experiments.render import ABSENT, Table
from spgcl.experiments.results import Results
from spgcl.methods import find, parameters, resolved_settings
from spgcl.methods.presets import known_graphs


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
