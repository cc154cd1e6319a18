"""The facts of a run: in short, and with settings, circumstances and the command that repeats it."""

import shlex
from pathlib import Path
from typing import Any

from spgcl.errors import InputError
from spgcl.methods import find, parameters, resolved_settings
from spgcl.report.charts import Item, code, facts, section, table
from spgcl.runs.record import Run


def summary(folder: Path, run: Run, notes: tuple[str, ...] = ()) -> Item:
    """The last section of a run's page."""
    items = [facts(_circumstances(run))]
    items.append(table(["setting", "value", "default"], _settings(run), "Settings", folded=True))
    items.append(code(repeating_command(folder, run)))
    words = "The command repeats the run; on the CPU of the same machine it gives the same bytes."
    if notes:
        words += " Changed while reading the graph: " + "; ".join(notes) + "."
    return section("run", "Run", items, words)


def headline(run: Run) -> dict[str, str]:
    """Graph, method, time and memory, each in a few words."""
    graph = run.graph
    phases = [(phase, seconds) for phase, seconds in run.seconds.items() if run.trains or phase != "train"]
    kind = "directed edges" if graph.get("directed") else "edges"
    return {
        "Graph": f"{run.dataset}: {graph['num_nodes']:,} nodes, {graph['num_edges']:,} {kind}, "
        f"{graph['num_features']:,} features",
        "Method": run.method + (f", preset {run.preset}" if run.preset else ""),
        "Training": _training(run),
        "Time": " + ".join(f"{seconds:.2f} s {phase}" for phase, seconds in phases) or "-",
        "Peak memory": f"{run.peak_memory_mib:,.0f} MiB",
    }


def _training(run: Run) -> str:
    if not run.steps:
        return "nothing to train"
    stopped = "" if run.status == "finished" else " (stopped early)"
    resumed = f", resumed from step {run.resumed_from:,}" if run.resumed_from else ""
    return f"{run.steps:,} steps{stopped}{resumed}"


def _circumstances(run: Run) -> dict[str, str]:
    versions = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    pairs = {
        "Seed": str(run.seed),
        "Device": f"{run.device}, {run.threads} {'threads' if run.threads != 1 else 'thread'}",
        "Graph from": run.graph["source"],
        "Digest": run.graph["digest"][:16],
        "Versions": versions,
    }
    if run.hold_out_edges:
        pairs["Held out"] = f"{run.hold_out_edges:g} of the edges, for link prediction"
    return pairs


def _settings(run: Run) -> list[list[str]]:
    try:
        defaults = {name: parameter.default for name, parameter in parameters(find(run.method)).items()}
    except InputError:
        defaults = {}
    return [
        [name, str(value), "" if defaults.get(name) == value else str(defaults.get(name, "-"))]
        for name, value in run.settings.items()
    ]


def repeating_command(folder: Path, run: Run) -> str:
    """A command that repeats a run, from any folder, into a folder next to it."""
    options: dict[str, Any] = {
        "method": run.method,
        "seed": run.seed,
        "preset": run.preset,
        **run.graph["options"],
        "labels": run.graph["labels"],
        "hold-out-edges": run.hold_out_edges or None,
        "format": None if run.embedding_format == "parquet" else run.embedding_format,
        "observe": _observed_every(run) or None,
        "device": run.device.split(":")[0],
        "threads": run.threads,
        "precision": None if run.precision == "auto" else run.precision,
        "deterministic": run.deterministic,
    }
    words = ["spgcl", "fit", run.graph["source"]]
    for name, value in options.items():
        if value is True:
            words.append(f"--{name}")
        elif value is not None and value is not False:
            words += [f"--{name}", str(value)]
    try:
        size = run.graph["num_nodes"], run.graph["num_edges"]
        implied = resolved_settings(run.method, run.preset, run.dataset, {}, size)
    except InputError:
        implied = {}
    for name, value in run.settings.items():
        if value != implied.get(name):
            words += ["--set", f"{name}={value}"]
    return shlex.join([*words, "--out", f"{folder.absolute()}-again"])


def _observed_every(run: Run) -> int:
    steps = [int(point["step"]) for point in run.history.get("observations", [])]
    return steps[1] - steps[0] if len(steps) > 1 else len(steps)
