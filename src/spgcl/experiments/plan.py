"""Plans as data: one TOML file per table or figure says what is run, and a run has a stable digest."""

import hashlib
import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import files
from itertools import product
from typing import Any

from spgcl.errors import unknown
from spgcl.methods import find, parameters, resolved_settings
from spgcl.methods.presets import known_graphs, preset

NAMES = (
    *(f"table{number}" for number in range(1, 12)),
    *("fig-distance", "fig-cover", "fig-topk", "fig-thop", "audit"),
)
# The preset of a graph that was chosen on validation, else the published one, else the defaults.
_BEST = ("validated", "published")


@dataclass(frozen=True)
class Run:
    """One training, and what is measured of it.

    Attributes:
        row: The row of the table that it belongs to.
        measure: A key of `spgcl.experiments.measures.MEASURES`.
        graph: Name of a data set.
        method: One of METHODS; empty if only the graph is measured.
        preset: Named settings, or None for the defaults.
        given: Settings that differ from those.
        seed: Decides the training.
        options: Of the measurement.
    """

    row: str
    measure: str
    graph: str
    method: str
    preset: str | None
    given: Mapping[str, Any]
    seed: int
    options: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Every hyper-parameter."""
        return resolved_settings(self.method, self.preset, self.graph, self.given) if self.method else {}

    @cached_property
    def digest(self) -> str:
        """The same for the same measurement, whatever table it is for.

        It covers the settings that the preset and the plan name, not the defaults of the others: a method
        that gets another hyper-parameter keeps its results.
        """
        named = preset(self.preset, self.method, self.graph) if self.preset else {}
        asked = {
            **{name: self.settings[name] for name in (*named, *self.given)},
            "run": [self.measure, dict(self.options), self.graph, self.method, self.seed],
        }
        return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Plan:
    """What a table or figure needs, as read from its file.

    Attributes:
        title: What it shows, one sentence.
        layout: A key of `spgcl.experiments.layouts.LAYOUTS`.
        graphs: Columns, or rows, small graphs first.
        rows: What is run on each of them; a row may have a measure, options, graphs and seeds of its own.
        seeds: Trainings of each.
        reads: Results files of other scripts with runs that are taken over.
        notes: Sentences below the table.
        view: What only the layout reads.
    """

    name: str
    title: str
    layout: str
    measure: str
    graphs: tuple[str, ...]
    rows: tuple[Mapping[str, Any], ...]
    seeds: int
    reads: tuple[str, ...]
    notes: tuple[str, ...]
    options: Mapping[str, Any]
    view: Mapping[str, Any]

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """Every run, one seed of everything before the next."""
        return tuple(
            run
            for seed in range(self.seeds)
            for graph in self.graphs
            for row in self.rows
            for run in self._runs_of(row, graph, seed)
        )

    @property
    def row_names(self) -> tuple[str, ...]:
        """The rows in order."""
        return tuple(dict.fromkeys(run.row for run in self.runs))

    def _runs_of(self, row: Mapping[str, Any], graph: str, seed: int) -> Iterable[Run]:
        if seed >= row.get("seeds", self.seeds) or graph not in row.get("graphs", self.graphs):
            return
        method = row.get("method", "")
        for name, given in variants(row):
            chosen = _preset_of(row.get("preset", "best"), method, graph)
            measure, options = row.get("measure", self.measure), row.get("options", self.options)
            yield Run(name, measure, graph, method, chosen, given, seed, options)


def variants(row: Mapping[str, Any]) -> Iterable[tuple[str, dict[str, Any]]]:
    """The settings of a row: with `vary`, one per combination, named after its values."""
    name, given, vary = row.get("name", row.get("method", "")), row.get("set", {}), row.get("vary", {})
    for values in product(*vary.values()):
        chosen = dict(zip(vary, values, strict=True))
        words = ", ".join(f"{key}={value}" for key, value in chosen.items())
        yield ", ".join(part for part in (name, words) if part), {**given, **chosen}


def _preset_of(asked: str, method: str, graph: str) -> str | None:
    """The first preset that has the graph, of those that are asked for; None for the defaults."""
    choices = {"best": _BEST, "defaults": ()}.get(asked, (asked,))
    return next((name for name in choices if graph in known_graphs(name, method)), None)


def plan_of(name: str, *, quick: bool = False) -> Plan:
    """The plan of a table or figure; quick: its small version on the built-in graphs."""
    record = _read(name)
    small: Mapping[str, Any] = record.get("quick", {}) if quick else {}
    record = {**record, **{key: value for key, value in small.items() if key not in ("set", "vary")}}
    return Plan(
        name=name,
        title=record["title"],
        layout=record["layout"],
        measure=record.get("measure", ""),
        graphs=tuple(record.get("graphs", ())),
        rows=tuple(_shortened(row, small) for row in record.get("rows", ())),
        seeds=record.get("seeds", 1),
        reads=tuple(record.get("reads", ())),
        notes=tuple(record.get("notes", ())),
        options=record.get("options", {}),
        view=record.get("view", {}),
    )


def asked_names(names: Iterable[str]) -> list[str]:
    """The names of plans, with `all` for every one."""
    chosen: dict[str, None] = {}
    for name in names:
        if name not in (*NAMES, "all"):
            raise unknown("experiment", name, (*NAMES, "all"))
        chosen |= dict.fromkeys(NAMES if name == "all" else (name,))
    return list(chosen)


def _shortened(row: Mapping[str, Any], small: Mapping[str, Any]) -> Mapping[str, Any]:
    """A row with the settings of the small version, as far as its method has them."""
    known = parameters(find(row["method"])) if "method" in row else {}
    given = {name: value for name, value in small.get("set", {}).items() if name in known}
    vary = {**row.get("vary", {}), **small.get("vary", {})} if "vary" in row else {}
    own = {name: value for name, value in row.items() if name not in small}
    return {**own, "set": {**row.get("set", {}), **given}, "vary": vary}


@cache
def _read(name: str) -> dict[str, Any]:
    text = files("spgcl.experiments").joinpath("plans", f"{name}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
