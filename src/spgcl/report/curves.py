"""How training went: the loss, and the health curves that were recorded."""

from collections.abc import Mapping, Sequence
from typing import Any

from spgcl.report.charts import Curve, Item, lines, section, text
from spgcl.runs.record import Run

# What a curve is called on the page; others keep the name they were recorded by.
TITLES = {
    "node_cover_ratio": "Cover ratio: nodes ever among the selected",
    "overlapped_selection_ratio": "Overlap: selected pairs that were selected before",
    "class_centre_distance": "Cosine distance of nodes to the centre of their class",
    "transformed_homophily": "Homophily of the transformed graph",
}


def training(run: Run) -> Item:
    """The section about training."""
    items = training_charts({run.method: run})
    words = ""
    if not run.history.get("loss"):
        words = f"{run.method} has nothing to train."
    elif not run.history.get("observations"):
        words = "Health curves are recorded by spgcl fit --observe EVERY."
    return section("training", "Training", items or [text("No curve was recorded.")], words)


def training_charts(runs: Mapping[str, Run]) -> list[Item]:
    """Losses, one chart a method as losses of different methods do not compare, and every health curve.

    A run has one colour in all charts.
    """
    items = []
    for method in dict.fromkeys(run.method for run in runs.values()):
        losses = {
            name: Curve(range(1, len(run.history["loss"]) + 1), run.history["loss"], colour=place)
            for place, (name, run) in enumerate(runs.items())
            if run.method == method and run.history.get("loss")
        }
        if losses:
            items.append(lines(f"Loss of {method}", losses, "step"))
        if losses and all(_falls_at_once(curve.values) for curve in losses.values()):
            items.append(lines(f"Loss of {method} after a tenth of the steps", _later(losses), "step"))
    looks = {name: run.history.get("observations", []) for name, run in runs.items()}
    recorded = dict.fromkeys(key for seen in looks.values() for look in seen for key in look if key != "step")
    known = [name for name in TITLES if name in recorded]
    for title, parts in _families([*known, *(name for name in recorded if name not in TITLES)]).items():
        curves: dict[str, Curve] = {}
        for place, (name, seen) in enumerate(looks.items()):
            for number, (part, key) in enumerate(parts.items()):
                label = part if len(runs) == 1 else f"{name} {part}".strip()
                marks = (number, 0) if len(runs) == 1 else (place, number)
                curves[label] = Curve(*_values(seen, key), *marks)
        shown = {label: curve for label, curve in curves.items() if curve.positions}
        items.append(lines(title, shown, "step"))
    return items


def _falls_at_once(values: Sequence[float]) -> bool:
    """Whether the first tenth spans so much that nothing can be seen of the rest."""
    later = values[len(values) // 10 :]
    return len(values) >= 50 and max(later) - min(later) < (max(values) - min(values)) / 5


def _later(curves: Mapping[str, Curve]) -> dict[str, Curve]:
    return {
        name: curve._replace(
            positions=curve.positions[len(curve.values) // 10 :],
            values=curve.values[len(curve.values) // 10 :],
        )
        for name, curve in curves.items()
    }


def _families(curves: list[str]) -> dict[str, dict[str, str]]:
    """Curves by the title of their chart: those that differ by a number at the end share one."""
    families: dict[str, dict[str, str]] = {}
    for curve in curves:
        stem, _, number = curve.rpartition("_")
        numbered = bool(stem) and number.isdecimal()
        words = (stem if numbered else curve).replace("_", " ").capitalize()
        part = f"layer {number}" if numbered else ""
        families.setdefault(TITLES.get(curve, words), {})[part] = curve
    return families


def _values(looks: list[dict[str, Any]], name: str) -> tuple[list[int], list[float]]:
    seen = [look for look in looks if name in look]
    return [look["step"] for look in seen], [look[name] for look in seen]
