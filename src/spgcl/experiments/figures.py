"""Figures as SVG and PNG, readable in black and white."""

from collections.abc import Callable
from pathlib import Path
from statistics import fmean, pstdev
from typing import TYPE_CHECKING, Any

from spgcl.errors import InputError
from spgcl.experiments.layouts import curve, mean_test
from spgcl.experiments.results import Results
from spgcl.files import replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Lines are told apart by their marks and strokes, not by their colours.
MARKS = "os^Dv*P"
STROKES = ("-", "--", "-.", ":", (0, (1, 1)), (0, (5, 1)), (0, (3, 1, 1, 1)))
GREYS = ("black", "0.35", "0.55", "0.15", "0.45", "0.65", "0.25")


def figure_paths(results: Results, folder: Path) -> list[Path]:
    """The figure of a plan as SVG and PNG; none if it is a table, or nothing is known yet."""
    draw = FIGURES.get(results.plan.layout)
    if draw is None or len(results.missing()) == len(results.plan.runs):
        return []
    figure = draw(results)
    return write_figure(figure, folder / results.plan.name)


def write_figure(figure: "Figure", stem: Path) -> list[Path]:
    """Write a figure as STEM.svg and STEM.png: the same bytes for the same values."""
    from matplotlib import rc_context

    stem.parent.mkdir(parents=True, exist_ok=True)
    paths = []
    for kind, facts in (("svg", {"Date": None, "Creator": None}), ("png", {"Software": None})):
        path = stem.with_name(f"{stem.name}.{kind}")
        with replacing(path) as temporary, rc_context({"svg.hashsalt": stem.name, "svg.fonttype": "none"}):
            figure.savefig(temporary, format=kind, dpi=150, metadata=facts)
        paths.append(path)
    return paths


def new_figure(columns: int = 1, **size: Any) -> tuple["Figure", list[Any]]:
    """An empty figure with panels side by side, and the panels."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError("figures need matplotlib; install it by `pip install 'spgcl[report]'`") from None
    figure = Figure(figsize=(size.get("width", 5.0 * columns), size.get("height", 3.6)), layout="constrained")
    panels = figure.subplots(1, columns, squeeze=False)[0]
    for panel in panels:
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(axis="y", color="0.9", linewidth=0.8)
    return figure, list(panels)


def sweep_figure(results: Results) -> "Figure":
    """One line per graph over the values of a hyper-parameter, with the deviation over retrainings."""
    plan = results.plan
    figure, (panel,) = new_figure(width=6.0)
    name = plan.view["parameter"]
    for index, graph in enumerate(plan.graphs):
        found = {
            run.given[name]: results.of_cell(run.row, graph)
            for run in plan.runs
            if run.graph == graph and results.of(run)
        }
        if not found:
            continue
        tests = [[line["scores"]["paper"]["test"] for line in lines] for lines in found.values()]
        panel.errorbar(
            list(found),
            [mean_test(lines, "paper") for lines in found.values()],
            yerr=[pstdev(each) for each in tests],
            label=graph,
            capsize=2,
            **_style(index),
        )
        panel.set_xticks(sorted({*panel.get_xticks(), *found} & {*found}))
    panel.set(xlabel=plan.view["label"], ylabel="test score (%)")
    _legend(figure, panel)
    return figure


def curve_figure(results: Results) -> "Figure":
    """One panel per curve, one line per graph over the steps, with the range over retrainings."""
    plan = results.plan
    curves = plan.view["curves"]
    figure, panels = new_figure(len(curves))
    for panel, (name, title) in zip(panels, curves.items(), strict=True):
        for index, graph in enumerate(plan.graphs):
            steps, values = curve(results.of_cell(plan.row_names[0], graph), name)
            if not steps:
                continue
            style = _style(index)
            every = max(1, len(steps) // 6)
            panel.plot(
                steps, [fmean(each) for each in values], label=graph, markevery=(index, every), **style
            )
            panel.fill_between(
                steps,
                [min(each) for each in values],
                [max(each) for each in values],
                color="0.85",
                linewidth=0,
            )
        panel.set(xlabel="step", ylabel=title)
        panel.set_ylim(bottom=0)
    _legend(figure, panels[0])
    return figure


def _style(index: int) -> dict[str, Any]:
    return {
        "marker": MARKS[index % len(MARKS)],
        "linestyle": STROKES[index % len(STROKES)],
        "color": GREYS[index % len(GREYS)],
        "markersize": 5,
        "linewidth": 1.3,
    }


def _legend(figure: "Figure", panel: Any) -> None:
    handles, names = panel.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside right upper", frameon=False, fontsize="small")


FIGURES: dict[str, Callable[[Results], "Figure"]] = {"sweep": sweep_figure, "curves": curve_figure}
