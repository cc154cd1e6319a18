"""The tables and figures of the paper: what is missing is run, and everything is written."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spgcl.datasets.entries import entries
from spgcl.datasets.loading import names as data_sets
from spgcl.datasets.storage import data_folder, is_on_disk
from spgcl.errors import InputError, note, unknown
from spgcl.experiments.execute import Failure, Job, execute
from spgcl.experiments.figures import figure_paths
from spgcl.experiments.layouts import tables_of
from spgcl.experiments.plan import Plan, asked_names, plan_of
from spgcl.experiments.render import write_tables
from spgcl.experiments.results import Results

# A context around the runs, given how many there are; gives what is called after each of them.
Watch = Callable[[int], AbstractContextManager[Callable[[Job], None]]]


@dataclass(frozen=True)
class Wanted:
    """What is wanted of the experiments; see the options of `spgcl reproduce`.

    Attributes:
        graphs: Only these; empty for all.
        measure: Whether runs without a result are run.
    """

    names: Sequence[str]
    quick: bool = False
    results: Path = Path("results")
    out: Path = Path("reproduction")
    graphs: Sequence[str] = ()
    measure: bool = True
    device: str = "auto"
    workers: int | None = None


def reproduce(wanted: Wanted, watch: Watch) -> list[dict[str, Any]]:
    """Run what is missing, write tables and figures, and return what there is by name."""
    names = asked_names(wanted.names)
    for graph in wanted.graphs:
        if graph not in data_sets():
            raise unknown("data set", graph, data_sets())
    # The small versions have files of their own: nobody should take them for results.
    folders = [folder / "quick" if wanted.quick else folder for folder in (wanted.results, wanted.out)]
    found = [Results(plan_of(name, quick=wanted.quick), folders[0]) for name in names]
    for results in found:
        note(stale_remark(results))
    failures: list[Failure] = []
    if wanted.measure:
        jobs = _jobs(found, wanted.graphs)
        with watch(len(jobs)) as done:
            failures = execute(jobs, device=wanted.device, workers=wanted.workers, done=done)
        for results in found:
            results.read()
    records = [_written(results, folders[1]) for results in found]
    if failures:
        raise _failed(failures)
    return records


def _jobs(found: Iterable[Results], graphs: Sequence[str]) -> list[Job]:
    """What is to run, each run once, and one line on what cannot be."""
    jobs: dict[str, Job] = {}
    for results in found:
        absent = absent_graphs(results.plan)
        if absent:
            note(
                f"{results.plan.name}: {', '.join(absent)} skipped, not in {data_folder()}; "
                f"get {'it' if len(absent) == 1 else 'them'} by `spgcl datasets fetch {' '.join(absent)}`"
            )
        for run in results.missing():
            if run.graph not in absent and (not graphs or run.graph in graphs):
                jobs.setdefault(run.digest, Job(run, results.path))
    return sorted(jobs.values(), key=lambda job: job.run.seed)


def stale_remark(results: Results) -> str:
    """One line on results that were measured with other settings than today's, if there are any."""
    if not results.stale:
        return ""
    name, count, total = results.plan.name, len(results.stale), len(results.plan.runs)
    return (
        f"{name}: {count} of {total} results are stale, measured with other settings than today's; "
        f"`spgcl reproduce {name}` measures them again"
    )


def absent_graphs(plan: Plan) -> list[str]:
    """The graphs of a plan whose files are missing, unless drawn ones stand in for them."""
    if plan.measure == "memory":
        return []
    known = [name for name in dict.fromkeys(run.graph for run in plan.runs) if name in entries()]
    return [name for name in known if not is_on_disk(entries()[name], entries()[name].files)]


def _written(results: Results, out: Path) -> dict[str, Any]:
    plan = results.plan
    title = f"{plan.name}: {plan.title}"
    figures = figure_paths(results, out)
    files = [*write_tables(out, plan.name, title, tables_of(results), figures), *figures]
    return {
        "name": plan.name,
        "runs": len(plan.runs),
        "missing": len(results.missing()),
        "stale": len(results.stale),
        "results": str(results.path),
        "files": [str(path) for path in files],
    }


def _failed(failures: Sequence[Failure]) -> InputError:
    first = failures[0]
    more = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
    return InputError(
        f"{first.run.method or first.run.measure} on {first.run.graph} failed{more}: {first.message}; "
        "the other results are kept"
    )
