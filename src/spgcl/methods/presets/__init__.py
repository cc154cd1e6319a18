"""Named settings per graph, kept as data: only the differences from a method's defaults."""

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from spgcl.errors import InputError, unknown

PRESETS = ("published", "paper", "validated")


@cache
def _table(name: str) -> dict[str, dict[str, dict[str, Any]]]:
    return tomllib.loads((files(__name__) / f"{name}.toml").read_text(encoding="utf-8"))


def preset(name: str, method: str, dataset: str) -> dict[str, Any]:
    """Settings of a method for a graph: those common to all graphs of the preset and those of this graph.

    A graph unknown to the preset is refused: settings tuned for one graph mean nothing on another.
    """
    require_preset(name, method)
    graphs, known = _table(name).get(method, {}), known_graphs(name, method)
    if dataset not in known:
        raise InputError(
            f"preset {name!r} of {method} has no setting for {repr(dataset) if dataset else 'this graph'}, "
            f"only for {', '.join(known)}; leave --preset out to use the defaults"
        )
    return {**graphs.get("common", {}), **graphs[dataset]}


def require_preset(name: str, method: str) -> None:
    """Refuse an unknown preset, and one without settings for the method."""
    if name not in PRESETS:
        raise unknown("preset", name, PRESETS)
    if not known_graphs(name, method):
        others = " or ".join(repr(other) for other in PRESETS if known_graphs(other, method))
        ways = f"choose {others}, or " if others else f"add --method {next(iter(_table(name)))}, or "
        raise InputError(f"{method} has no preset {name!r}; {ways}leave --preset out to use the defaults")


def known_graphs(name: str, method: str) -> list[str]:
    """Graphs for which a preset has settings of a method."""
    return [graph for graph in _table(name).get(method, {}) if graph != "common"]
