"""The numbers of a theorem as a figure, readable in black and white."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spgcl.experiments.figures import checked_kind, new_figure, require_matplotlib, save_figure
from spgcl.theory.bound import Bound
from spgcl.theory.concentration import Concentration
from spgcl.theory.deviations import Level
from spgcl.theory.factorisation import Factorisation
from spgcl.theory.similarity import Similarity

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Relative differences below this are rounding errors, drawn as this.
_ROUNDING = 1e-17


def require_drawable(path: Path) -> None:
    """Refuse a file that is not .svg or .png, and to draw without matplotlib, before anything is computed."""
    checked_kind(path)
    require_matplotlib()


def draw(found: Any, path: Path, name: str) -> None:
    """Draw what a theorem gave on a graph into an .svg or .png file."""
    figure, title = DRAWINGS[type(found)](found)
    figure.suptitle(f"{title}: {name}", fontsize="medium")
    save_figure(figure, path, " ".join(found.verdict))


def concentration_figure(found: Concentration) -> tuple["Figure", str]:
    """Deviations and bounds over the degree, of representations and of their inner products."""
    figure, panels = new_figure(2, height=4.0)
    lines = (
        {"deviation": "deviation", "bound": "bound"},
        {
            "product_deviation": "deviation",
            "product_bound": "bound by bounded differences",
            "printed_bound": "bound as printed",
        },
    )
    for panel, names, what in zip(panels, lines, ("of $Z_i$", "of $Z_i \\cdot Z_j$"), strict=True):
        for stroke, (name, word) in zip(("-", "--", ":"), names.items(), strict=False):
            panel.plot(
                *_curve(found.drawn, name), stroke, color="black", marker="o", markersize=3, label=word
            )
        deviation = next(iter(names))
        panel.plot(
            *_curve(found.graph, deviation), "s", color="black", markerfacecolor="white", label="the graph"
        )
        panel.set(xscale="log", yscale="log", xlabel="degree", title=f"Deviation {what}")
        panel.legend(frameon=False, fontsize="small")
    return figure, f"Theorem 1, quantiles at {1 - found.delta:g}"


def _curve(levels: Sequence[Level], name: str) -> tuple[list[int], list[float]]:
    points = [(level.degree, value) for level in levels if (value := getattr(level, name))]
    return [degree for degree, _ in points], [value for _, value in points]


def factorisation_figure(found: Factorisation) -> tuple["Figure", str]:
    """How far the forms of Lemma 1 are from equal, at random representations and at the minimiser."""
    figure, (panel,) = new_figure(width=6.5, height=2.6)
    forms = {
        "as printed": "printed",
        "as printed, predicted": "predicted",
        "by degree": "by_degree",
        "averaged": "averaged",
    }
    for word, values, face in (("random", found.random, "white"), ("minimiser", found.minimiser, "black")):
        differences = [max(abs(getattr(values, name)), _ROUNDING) for name in forms.values()]
        _dots(panel, dict(zip(forms, differences, strict=True)), face, word)
    panel.set(xscale="log", xlabel="difference of the two losses, relative")
    figure.legend(loc="outside right upper", frameon=False, fontsize="small", title="representations")
    return figure, "Lemma 1"


def similarity_figure(found: Similarity) -> tuple["Figure", str]:
    """Inner products within and between classes, and their gap beside 1 - phi."""
    figure, panels = new_figure(2, width=9.0, height=2.6)
    for word, face in (("same", "black"), ("other", "white")):
        values = {name: getattr(pairs, word) for name, pairs in found.by_drawing.items()}
        _dots(panels[0], values, face, f"{word} class")
    _dots(panels[1], {name: pairs.gap for name, pairs in found.by_drawing.items()}, "black", "gap")
    panels[1].axvline(1 - found.phi, color="black", linestyle="--", label=r"$1 - \phi$")
    panels[1].set_yticklabels([])
    panels[0].set(xlabel="mean inner product of a pair")
    panels[1].set(xlabel="same class - other class")
    for panel in panels:
        panel.legend(frameon=False, fontsize="small")
    return figure, "Theorem 2"


def bound_figure(found: Bound) -> tuple["Figure", str]:
    """The parts of the bound and the measured errors; right of 1 a bound says nothing."""
    figure, (panel,) = new_figure(width=6.5, height=2.6)
    known = {name: value for name, value in found.compared.items() if value}
    for measured, face in ((False, "white"), (True, "black")):
        values = {name: value for name, value in known.items() if name.startswith("measured") == measured}
        _dots(panel, values, face, "error" if measured else "bound", among=list(known))
    panel.axvline(1, color="black", linestyle="--", label="vacuous to the right")
    panel.set(xscale="log", xlabel="squared error")
    figure.legend(loc="outside right upper", frameon=False, fontsize="small")
    return figure, f"Theorem 3, {found.dimensions} dimensions"


def _dots(
    panel: "Axes", values: Mapping[str, float], face: str, label: str, among: Sequence[str] = ()
) -> None:
    """A mark per value at the height of its name, the first name on top."""
    names = list(among or values)[::-1]
    heights = [names.index(name) for name in values]
    panel.plot(list(values.values()), heights, "o", color="black", markerfacecolor=face, label=label)
    panel.set_yticks(range(len(names)), names)
    panel.set_ylim(-0.5, len(names) - 0.5)
    panel.grid(axis="x", color="0.9", linewidth=0.8)


DRAWINGS: dict[type, Callable[[Any], tuple["Figure", str]]] = {
    Concentration: concentration_figure,
    Factorisation: factorisation_figure,
    Similarity: similarity_figure,
    Bound: bound_figure,
}
