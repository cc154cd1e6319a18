"""Time by phase, peak memory and growth, beside a frozen reference: speed, memory, scale."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from spgcl.cli import run
from spgcl.cli.options import DeviceOption, JsonOption, SetOption, ThreadsOption, given_settings
from spgcl.cli.output import note, print_json, print_table
from spgcl.errors import InputError

if TYPE_CHECKING:
    import torch
    from timing.phases import Subject

app = typer.Typer(help="Time, memory and growth, beside a frozen reference.", no_args_is_help=True)

GraphsArgument = Annotated[
    list[str] | None,
    typer.Argument(help="Data sets, genius-size or twitch-gamers-size (default: csbm-heterophilic)."),
]
RoundsOption = Annotated[int, typer.Option("--rounds", min=1, help="Rounds that medians are taken over.")]
ResultsOption = Annotated[
    Path | None, typer.Option("--results", help="File to append to (default: results/ of a checkout).")
]
MethodsOption = Annotated[str, typer.Option("--methods", help="Names of methods, a,b,c.")]
ReferenceOption = Annotated[bool, typer.Option("--reference/--no-reference", help="Time the reference too.")]
DEFAULT_GRAPHS = ("csbm-heterophilic",)


@app.command("speed")
def speed(
    graphs: GraphsArgument = None,
    methods: MethodsOption = "spgcl,bgrl,grace",
    reference: ReferenceOption = True,
    end_to_end: Annotated[
        bool, typer.Option("--end-to-end", help="Also run fit and eval whole, in a process of their own.")
    ] = False,
    precision: Annotated[
        Literal["float32", "tf32"],
        typer.Option("--precision", help="Of everybody's matrix products, on CUDA."),
    ] = "float32",
    rounds: RoundsOption = 5,
    set_: SetOption = None,
    results: ResultsOption = None,
    device: DeviceOption = "auto",
    threads: ThreadsOption = None,
    json: JsonOption = False,
) -> None:
    """Seconds by phase, ours and the reference's in turn, and how far a step is from its floor."""
    where = _start(graphs, device, threads)
    import torch
    from timing.end_to_end import measure_end_to_end
    from timing.speed import OURS, measure_speed

    given = given_settings(set_)
    plans = _plans(graphs, methods, given, reference)
    if end_to_end:
        _require_whole_runs(plans)
    records = []
    for graph, subjects in plans.items():
        say = _sayer(graph, rounds)
        record = measure_speed(graph, subjects, where, rounds=rounds, precision=precision, progress=say)
        if end_to_end:
            settings = record["subjects"][OURS]["settings"]
            record["end_to_end"] = measure_end_to_end(
                graph, settings, where, threads=torch.get_num_threads(), rounds=rounds
            )
        records.append(_finished(record, given, where, results, "speed.jsonl"))
        if not json:
            _show_speed(record)
    if json:
        print_json(records)


@app.command("memory")
def memory(
    graphs: GraphsArgument = None,
    methods: MethodsOption = "spgcl",
    reference: ReferenceOption = True,
    steps: Annotated[
        int | None, typer.Option("--steps", min=1, help="Steps trained before embedding (default: 20).")
    ] = None,
    set_: SetOption = None,
    results: ResultsOption = None,
    device: DeviceOption = "auto",
    threads: ThreadsOption = None,
    json: JsonOption = False,
) -> None:
    """Peak memory of training and embedding at width 128, the paper's setting, each in a fresh process."""
    where = _start(graphs, device, threads)
    import torch
    from timing.memory import measure_memory

    given = {"hidden": 128, "steps": 20, **given_settings(set_, steps)}
    plans = _plans(graphs, methods, given, reference)
    records = []
    for graph, subjects in plans.items():
        measured = {}
        for subject in subjects:
            _say(f"{graph}: {subject.name}")
            found = measure_memory(graph, subject.name, subject.settings, where, torch.get_num_threads())
            measured[subject.name] = {"settings": dict(subject.settings), **found}
        records.append(
            _finished({"dataset": graph, "subjects": measured}, given, where, results, "memory.jsonl")
        )
    if json:
        print_json(records)
        return
    rows = [
        [record["dataset"], name, part["settings"]["hidden"], part["peak_mib"], part["before_mib"]]
        for record in records
        for name, part in record["subjects"].items()
    ]
    what = "allocated on the accelerator" if where.type == "cuda" else "resident"
    print_table(f"peak memory, {what}", ["graph", "what", "hidden", "peak MiB", "before MiB"], rows)


@app.command("scale")
def scale(
    nodes: Annotated[
        list[int] | None, typer.Argument(min=1000, help="Sizes (default: 100000 1000000 10000000).")
    ] = None,
    rounds: RoundsOption = 5,
    set_: SetOption = None,
    results: ResultsOption = None,
    device: DeviceOption = "auto",
    threads: ThreadsOption = None,
    json: JsonOption = False,
) -> None:
    """How prepare, step and embed grow with the graph, at one average degree and a fixed pool."""
    where = _start(None, device, threads)
    import torch
    from timing.scale import SIZES, growth_settings, measure_growth

    given = given_settings(set_)
    record = measure_growth(
        nodes or SIZES,
        growth_settings(given),
        where,
        threads=torch.get_num_threads(),
        rounds=rounds,
        progress=lambda size: _say(f"{size:,} nodes"),
    )
    _finished(record, given, where, results, "scale.jsonl")
    if json:
        print_json(record)
        return
    phases = ("prepare", "start", "step", "embed")
    rows: list[list[Any]] = [
        [
            f"{one['num_nodes']:,}",
            *[one["seconds"][phase] for phase in phases],
            one["random_row_seconds"] * 1e9,
            one["peak_mib"],
        ]
        for one in record["sizes"]
    ]
    ratio = record["growth"]
    growth = [ratio.get(name) for name in (*phases, "random_row")]
    rows.append([f"x {ratio['nodes_and_edges']:.4g}", *growth, None])
    print_table("seconds", ["nodes", *phases, "random row ns", "peak MiB"], rows)


def _start(graphs: list[str] | None, device: str, threads: int | None) -> "torch.device":
    """Refuse unknown graphs, set the threads and choose the device, before anything is measured."""
    import torch
    from timing.graphs import require_known

    from spgcl.engine.device import choose_device

    for graph in graphs or ():
        require_known(graph)
    if threads:
        torch.set_num_threads(threads)
    return choose_device(device)


def _plans(
    graphs: list[str] | None, methods: str, given: Mapping[str, Any], with_reference: bool
) -> "dict[str, list[Subject]]":
    from timing.speed import plan_subjects

    names = [name.strip() for name in methods.split(",")]
    return {
        graph: plan_subjects(graph, names, given, with_reference=with_reference)
        for graph in graphs or DEFAULT_GRAPHS
    }


def _require_whole_runs(plans: "dict[str, list[Subject]]") -> None:
    """End to end, `spgcl fit` loads the graph itself, and it is SP-GCL that is run."""
    from timing.graphs import SIZES
    from timing.speed import OURS

    for graph, subjects in plans.items():
        if graph in SIZES:
            raise InputError(f"{graph} is no data set that fit knows; leave it or --end-to-end out")
        if OURS not in {subject.name for subject in subjects}:
            raise InputError(f"--end-to-end runs {OURS}, which --methods leaves out; add it")


def _finished(
    record: dict[str, Any], given: Mapping[str, Any], device: "torch.device", results: Path | None, file: str
) -> dict[str, Any]:
    """The record with machine and command, appended to the results file where there is one."""
    from timing.record import append, machine

    words = [word for word in sys.argv[1:] if word not in ("--results", str(results))]
    record |= {
        "given": dict(given),
        "command": " ".join(["python", "benchmarks/bench.py", *words]),
        **machine(device),
    }
    checkout = Path("results").is_dir() and Path("src/spgcl").is_dir()
    path = results or (Path("results") / file if checkout else None)
    _say("")
    if path is None:
        note("nothing is recorded, as this is no checkout of the project; --results FILE appends to a file")
    else:
        append(path, record)
    return record


def _sayer(graph: str, rounds: int) -> Callable[[int, str], None]:
    return lambda number, name: _say(f"{graph}: round {number + 1} of {rounds}, {name}")


def _say(text: str) -> None:
    """One line that the next one is written over, on a terminal only."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def _show_speed(record: dict[str, Any]) -> None:
    from timing.phases import PHASES

    def row(name: str, values: Mapping[str, float], step: float) -> list[Any]:
        scale = {"step": step}
        shown = [values[phase] * scale.get(phase, 1) if phase in values else None for phase in PHASES]
        return [name, *shown]

    rows = [row(name, part["seconds"], 1000) for name, part in record["subjects"].items()]
    if "ratios" in record:
        rows.append(row("reference / spgcl", record["ratios"], 1))
    columns = ["", *["step ms" if phase == "step" else f"{phase} s" for phase in PHASES]]
    print_table(f"{record['dataset']}, medians of {record['rounds']}", columns, rows)
    if record.get("floor"):
        floor = record["floor"]
        for name, seconds in floor["seconds"].items():
            times = f"spgcl takes {floor['ratios'][name]:.3g} times that"
            print(f"floor of a step ({name} products): {1000 * seconds:.4g} ms; {times}")
    if "end_to_end" in record:
        seconds = record["end_to_end"]["seconds"]
        print(f"fit {seconds['fit']:.2f} s, eval {seconds['eval']:.2f} s, peak {seconds['peak_mib']:.0f} MiB")


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:], app, "bench.py"))
