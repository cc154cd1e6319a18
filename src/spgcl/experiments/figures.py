"""Figures as SVG and PNG, readable in black and white."""

import hashlib
import importlib
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from statistics import fmean, pstdev
from typing import TYPE_CHECKING, Any

from spgcl.errors import InputError
from spgcl.experiments.layouts import curve, mean_test, tables_of
from spgcl.experiments.render import markdown
from spgcl.experiments.results import Results
from spgcl.files import replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Lines are told apart by their marks and strokes, not by their colours.
MARKS = "os^Dv*P"
STROKES = ("-", "--", "-.", ":", (0, (1, 1)), (0, (5, 1)), (0, (3, 1, 1, 1)))
_KINDS = ("svg", "png")
GREYS = ("black", "0.35", "0.55", "0.15", "0.45", "0.65", "0.25")


def figure_paths(results: Results, folder: Path) -> list[Path]:
    """The figure of a plan as SVG and PNG; none if it is a table, or nothing is known yet."""
    if not has_figure(results):
        return []
    figure = FIGURES[results.plan.layout](results)
    return write_figure(figure, folder / results.plan.name, values_digest(results))


def has_figure(results: Results) -> bool:
    """Whether a plan is drawn, and has a result to draw."""
    return results.plan.layout in FIGURES and len(results.missing()) < len(results.plan.runs)


def current_svg(results: Results, earlier: str = "") -> str:
    """The figure of a plan as SVG: the earlier one if it was drawn from the same values.

    Other versions of the plotting library write other bytes for them.
    """
    digest = values_digest(results)
    if digest in earlier:
        return earlier
    text = BytesIO()
    _save(FIGURES[results.plan.layout](results), text, "svg", results.plan.name, digest)
    return text.getvalue().decode()


def values_digest(results: Results) -> str:
    """A name for what a figure shows: the same values as its table."""
    shown = "".join(map(markdown, tables_of(results)))
    return f"values {hashlib.sha256(shown.encode()).hexdigest()[:16]}"


def write_figure(figure: "Figure", stem: Path, description: str = "") -> list[Path]:
    """Write a figure as STEM.svg and STEM.png, see `save_figure`."""
    paths = [stem.with_name(f"{stem.name}.{kind}") for kind in _KINDS]
    for path in paths:
        save_figure(figure, path, description)
    return paths


def save_figure(figure: "Figure", path: Path, description: str = "") -> None:
    """Write a figure as .svg or .png: the same bytes for the same values."""
    kind = checked_kind(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        _save(figure, temporary, kind, path.stem, description)


def checked_kind(path: Path) -> str:
    """The format of a figure by the name of its file."""
    kind = path.suffix.lower().removeprefix(".")
    if kind not in _KINDS:
        raise InputError(f"{path} is no figure file; name it .svg or .png")
    return kind


def _save(figure: "Figure", target: Any, kind: str, name: str, description: str) -> None:
    from matplotlib import rc_context

    # Neither the date nor the version of the library, and no description if there is none.
    facts = dict.fromkeys(("Date", "Creator") if kind == "svg" else ("Software",))
    described = {"Description": description} if description else {}
    # Words stay words, and ids are made from the name instead of at random.
    with rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
        figure.savefig(target, format=kind, dpi=150, metadata={**facts, **described})


def require_matplotlib() -> None:
    """Refuse to draw without it."""
    try:
        importlib.import_module("matplotlib.figure")
    except ImportError:
        raise InputError("figures need matplotlib; install it by `pip install 'spgcl[report]'`") from None


def new_figure(columns: int = 1, **size: Any) -> tuple["Figure", list[Any]]:
    """An empty figure with panels side by side, and the panels."""
    require_matplotlib()
    from matplotlib.figure import Figure

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
        panel.set_ylim(0, 1.02)
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
