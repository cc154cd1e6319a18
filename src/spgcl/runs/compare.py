"""Several methods on one graph: trained alike, then compared with labels, or without as far as that goes."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from spgcl.errors import InputError, Note, note
from spgcl.evaluation import majority_class, split_half
from spgcl.methods import SHORT_LIST, find, parameters
from spgcl.runs.evaluate import Asked, as_asked, evaluate, stored_evaluation
from spgcl.runs.held_out import agreement_of_seeds, criteria_of, held_out
from spgcl.runs.kept import keep
from spgcl.runs.paired import chosen, differences, validation_of
from spgcl.runs.plan import Plan, Request, Watch, carry_out, plan
from spgcl.runs.sources import Loaded, resolve

_PARTS = ("probe", "knn", "clustering", "links", "reliability")
Say = Callable[[str], None]


@dataclass(frozen=True)
class Contest:
    """What is compared.

    Attributes:
        request: What all trainings have in common; its folder holds one run per method.
        methods: Names, in the order of the table.
        settings: Hyper-parameters by `NAME`, for every method that has it, or by `METHOD.NAME`.
        asked: How the runs are scored; labels are those of the request.
    """

    request: Request
    methods: Sequence[str] = SHORT_LIST
    settings: Mapping[str, Any] = field(default_factory=dict)
    asked: Asked = field(default_factory=Asked)


def compare(contest: Contest, watch: Watch, say: Say | None = None) -> dict[str, Any]:
    """Train every method that is not trained yet, score all alike, and put them side by side.

    A method that cannot be trained here, for example for its memory, is left out with the reason.

    Args:
        contest: What is compared.
        watch: Progress and stop of each training.
        say: Called with what is being done, in a few words.
    """
    request = contest.request
    loaded = request.loaded or resolve(request.graph, request.options, request.labels)
    loaded = as_asked(loaded, contest.asked)
    folder = request.out or Path("runs") / f"{loaded.name}-compared"
    plans = _plans(contest, loaded, folder)
    records: dict[str, dict[str, Any]] = {}
    for name, planned in plans.items():
        if say:
            say(name)
        try:
            records[name] = _trained_and_scored(planned, contest.asked, watch)
        except InputError as error:
            records[name] = {"dataset": loaded.name, "left_out": str(error)}
    record = _side_by_side(records, folder)
    if loaded.labels is None or loaded.splits is None:
        return {**record, "graph": split_half(loaded.graph)}
    majority = majority_class(loaded.labels, loaded.splits, metric=loaded.metric)
    return {**record, "majority": {"mean": majority.mean, "std": majority.std}}


def _plans(contest: Contest, loaded: Loaded, folder: Path) -> dict[str, Plan]:
    """One plan per method, all made before the first training: a wrong setting costs no time."""
    methods = list(dict.fromkeys(contest.methods))
    settings = _settings_by_method(methods, contest.settings)
    request = replace(contest.request, loaded=loaded)
    with warnings.catch_warnings():
        # Each plan would repeat the notes on the graph.
        plans = {}
        for name in methods:
            plans[name] = plan(replace(request, method=name, settings=settings[name], out=folder / name))
            warnings.simplefilter("ignore", Note)
    return plans


def _trained_and_scored(planned: Plan, asked: Asked, watch: Watch) -> dict[str, Any]:
    seconds, folders = 0.0, []
    # What an earlier comparison found, while the vectors are those of then.
    before = (stored_evaluation(planned.trainings[0].folder) or {}).get("held_out")
    for folder, run in carry_out(planned, watch=watch):
        keep(folder, planned.loaded)
        folders.append(folder)
        seconds += sum(run.seconds.values())
        if run.status == "interrupted":
            note(f"stopped after {run.steps} steps of {run.method}; the same command continues")
            raise KeyboardInterrupt
    asked, device = replace(asked, only=_PARTS), str(planned.request.device)
    found = evaluate(planned.folder, asked, device, loaded=planned.loaded)
    if planned.loaded.labels is None:
        first = found.records[folders[0]]
        first["held_out"] = held_out(planned, watch) if before is None else before
        if len(folders) > 1:
            found.record["seeds"] = agreement_of_seeds(folders)
    found.write()
    return {**found.record, "seconds": seconds}


def _settings_by_method(methods: Sequence[str], given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The settings of each method; one that no method has is refused."""
    known = {name: parameters(find(name)) for name in methods}
    found: dict[str, dict[str, Any]] = {name: {} for name in methods}
    for key, value in given.items():
        method, dot, name = key.rpartition(".")
        having = [method] if dot else [one for one in methods if name in known[one]]
        if not having or any(one not in known for one in having):
            raise InputError(
                f"--set {key}={value}: no method compared here has it; see spgcl methods {' '.join(methods)}"
            )
        for one in having:
            found[one][name] = value
    return found


def _side_by_side(records: Mapping[str, dict[str, Any]], folder: Path) -> dict[str, Any]:
    """The table of a comparison as plain values; with labels, the method that validation chooses."""
    scored = {name: record for name, record in records.items() if "mean" in record}
    best = chosen(scored) if scored else None
    gaps = differences(scored, best) if best else {}
    rows = []
    for name, record in records.items():
        row: dict[str, Any] = {"method": name, "run": str(folder / name), **_row(record)}
        rows.append({**row, "difference": gaps[name]} if name in gaps else row)
    first = next((record for record in records.values() if "left_out" not in record), {})
    about: dict[str, Any] = {key: first[key] for key in ("dataset", "metric", "split_source") if key in first}
    return {**about, "chosen": best, "methods": rows}


def _row(record: dict[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {name: record[name] for name in ("left_out", "seconds") if name in record}
    if "mean" in record:
        row |= {"validation": validation_of(record), "test": record["mean"], "std": record["std"]}
    if "knn" in record:
        row["knn"] = record["knn"]["mean"]
    return row | criteria_of(record)
