"""The loss, and the health curves that were recorded."""

from collections.abc import Mapping

from spgcl.report.charts import Curve, Item, lines, section, text
from spgcl.runs.record import Run

_LOWER, _HIGHER = "lower is better", "higher is better"
# Titles of charts, and which values are good; other curves keep the name under which they were recorded.
_TITLES = {
    "node_cover_ratio": ("Cover ratio: nodes ever among the selected", _HIGHER),
    "overlapped_selection_ratio": ("Overlap: selected pairs that were selected before", _LOWER),
    "class_centre_distance": ("Cosine distance of nodes to the centre of their class", _LOWER),
    "transformed_homophily": ("Homophily of the transformed graph", _HIGHER),
    "weight_norm": ("Weight norm", "should level off"),
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
    """Losses, one chart per method because they are not comparable across methods, and all health curves.

    A run has the same colour in all charts.
    """
    return [*_losses(runs), *_health(runs)]


def _losses(runs: Mapping[str, Run]) -> list[Item]:
    items = []
    for method in dict.fromkeys(run.method for run in runs.values()):
        losses = {
            name: Curve(range(1, len(run.history["loss"]) + 1), run.history["loss"], colour)
            for colour, (name, run) in enumerate(runs.items())
            if run.method == method and run.history.get("loss")
        }
        if losses:
            items.append(lines(f"Loss of {method}", losses, "step", better=_LOWER, logarithmic=True))
    return items


def _health(runs: Mapping[str, Run]) -> list[Item]:
    """One chart per health curve; curves whose names differ by a number at the end, the layer, share one."""
    charts: dict[tuple[str, str], dict[str, Curve]] = {title: {} for title in _TITLES.values()}
    for colour, (name, run) in enumerate(runs.items()):
        points = run.history.get("observations", [])
        for key in dict.fromkeys(key for point in points for key in point if key != "step"):
            stem, _, layer = key.rpartition("_")
            if not layer.isdecimal():
                stem, layer = key, ""
            title = _TITLES.get(stem, (stem.replace("_", " ").capitalize(), ""))
            chart = charts.setdefault(title, {})
            part = f"layer {layer}" if layer else ""
            steps = [point["step"] for point in points if key in point]
            values = [point[key] for point in points if key in point]
            if len(runs) == 1:
                chart[part] = Curve(steps, values, colour=len(chart))
            else:
                dash = sum(curve.colour == colour for curve in chart.values())
                chart[f"{name} {part}".strip()] = Curve(steps, values, colour, dash)
    return [
        lines(title, curves, "step", better=better) for (title, better), curves in charts.items() if curves
    ]
