"""What `benchmarks/bench.py speed` records of a graph."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch

from spgcl.errors import InputError, unknown
from spgcl.methods import find, parameters
from timing.floor import floor
from timing.graphs import load_graph, settings_of
from timing.phases import PHASES, STEP_PHASES, Subject, compare, ratios
from timing.reference import require_rules

OURS, REFERENCE = "spgcl", "reference"


def plan_subjects(
    graph: str, methods: Sequence[str], given: Mapping[str, Any], *, with_reference: bool
) -> list[Subject]:
    """What is timed on a graph: SP-GCL and the reference in all phases, the steps of other methods.

    Args:
        graph: Name of a graph.
        methods: Names of methods.
        given: Hyper-parameters for every method that has them.
        with_reference: Whether SP-GCL is compared with the reference, which has the published rules only.
    """
    known = {name: parameters(find(name)) for name in methods}
    for name in methods:
        if find(name).supervised or "steps" not in known[name]:
            raise InputError(f"{name} has no steps, or needs labels; time a method that trains without them")
    anywhere = list(dict.fromkeys(name for names in known.values() for name in names))
    for name in given:
        if name not in anywhere:
            raise unknown("parameter", name, anywhere)
    subjects = []
    for name in methods:
        own = {key: value for key, value in given.items() if key in known[name]}
        settings = settings_of(name, graph, own)
        subjects.append(Subject(name, settings, PHASES if name == OURS else STEP_PHASES))
        if name == OURS and with_reference:
            require_rules(settings)
            subjects.append(Subject(REFERENCE, settings))
    return subjects


def measure_speed(
    graph: str,
    subjects: Sequence[Subject],
    device: torch.device,
    *,
    rounds: int = 5,
    precision: str = "float32",
    progress: Callable[[int, str], None] | None = None,
) -> dict[str, Any]:
    """Time the subjects in turn; with SP-GCL among them also its floor, and with the reference the ratios."""
    load = partial(load_graph, graph)
    compare(subjects, load, device, rounds=rounds, precision=precision, progress=progress)
    record: dict[str, Any] = {
        "dataset": graph,
        "rounds": rounds,
        "precision": precision,
        "subjects": {subject.name: subject.as_record() for subject in subjects},
    }
    by_name = {subject.name: subject for subject in subjects}
    if OURS in by_name:
        ours = by_name[OURS]
        if REFERENCE in by_name:
            record["ratios"] = ratios(ours.medians(), by_name[REFERENCE].medians())
        record["floor"] = floor(load().graph, ours.settings, device, step=ours.medians()["step"])
    return record
