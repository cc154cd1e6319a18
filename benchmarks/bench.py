"""Time per phase, peak memory and scaling, next to a frozen reference, and the time of random walks.

Each command appends one line per measurement to the results file of its name, such as results/speed.jsonl.

python benchmarks/bench.py speed cora coauthor-physics --end-to-end
python benchmarks/bench.py memory coauthor-cs genius-size
python benchmarks/bench.py scale
python benchmarks/bench.py walks amazon-computers
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from record import RESULTS, command_line
from speed_tables import SECTIONS
from timing.end_to_end import measure_end_to_end
from timing.graphs import SIZES, require_known
from timing.memory import measure_memory
from timing.phases import Subject
from timing.scale import SIZES as SCALES
from timing.scale import growth_settings, measure_growth
from timing.speed import OURS, measure_speed, plan_subjects
from timing.walks import measure_walks

from spgcl.cli.options import Running, given_settings
from spgcl.cli.output import print_json
from spgcl.errors import InputError
from spgcl.experiments.results import append, machine

Record = dict[str, Any]


def speed(arguments: argparse.Namespace, device: torch.device) -> Iterator[Record]:
    """Seconds per phase, ours and the reference's in turn, and how far a step is from its floor."""
    given, rounds = given_settings(arguments.set), arguments.rounds
    plans = _plans(arguments, given)
    if arguments.end_to_end:
        _require_whole_runs(plans)
    for graph, subjects in plans.items():

        def progress(number: int, name: str, graph: str = graph) -> None:
            _show(f"{graph}: round {number + 1} of {rounds}, {name}")

        record = measure_speed(
            graph, subjects, device, rounds=rounds, precision=arguments.precision, progress=progress
        )
        if arguments.end_to_end:
            settings = record["subjects"][OURS]["settings"]
            record["end_to_end"] = measure_end_to_end(
                graph, settings, device, threads=torch.get_num_threads(), rounds=rounds
            )
        yield {**record, "given": given}


def memory(arguments: argparse.Namespace, device: torch.device) -> Iterator[Record]:
    """Peak memory of training and embedding at width 128, the paper's setting, each in a fresh process."""
    given = {"hidden": 128, "steps": 20, **given_settings(arguments.set, arguments.steps)}
    for graph, subjects in _plans(arguments, given).items():
        measured = {}
        for subject in subjects:
            _show(f"{graph}: {subject.name}")
            found = measure_memory(graph, subject.name, subject.settings, device, torch.get_num_threads())
            measured[subject.name] = {"settings": dict(subject.settings), **found}
        yield {"dataset": graph, "subjects": measured, "given": given}


def scale(arguments: argparse.Namespace, device: torch.device) -> Iterator[Record]:
    """How prepare, step and embed grow with the graph, at one average degree and a fixed pool."""
    given = given_settings(arguments.set)
    record = measure_growth(
        arguments.nodes or SCALES,
        growth_settings(given),
        device,
        threads=torch.get_num_threads(),
        rounds=arguments.rounds,
        progress=lambda size: _show(f"{size:,} nodes"),
    )
    yield {**record, "given": given}


def walks(arguments: argparse.Namespace, device: torch.device) -> Iterator[Record]:
    """Seconds of random walks from every node, without and with a bias."""
    for graph in arguments.graphs:
        yield from measure_walks(
            graph, device, walks=arguments.walks, length=arguments.length, rounds=arguments.rounds
        )


def _plans(arguments: argparse.Namespace, given: Record) -> dict[str, list[Subject]]:
    for graph in arguments.graphs:
        require_known(graph)
    methods = [name.strip() for name in arguments.methods.split(",")]
    return {
        graph: plan_subjects(graph, methods, given, with_reference=arguments.reference)
        for graph in arguments.graphs
    }


def _require_whole_runs(plans: dict[str, list[Subject]]) -> None:
    """End to end, `spgcl fit` loads the graph itself, and runs SP-GCL."""
    for graph, subjects in plans.items():
        if graph in SIZES:
            raise InputError(f"{graph} is not a data set that fit knows; leave it or --end-to-end out")
        if OURS not in {subject.name for subject in subjects}:
            raise InputError(f"--end-to-end runs {OURS}, which --methods leaves out; add it")


def _show(text: str) -> None:
    """A line that the next one overwrites, on a terminal only."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def _at_least(least: int) -> Callable[[str], int]:
    def number(word: str) -> int:
        if int(word) < least:
            raise argparse.ArgumentTypeError(f"{word} is below {least}")
        return int(word)

    return number


def parser() -> argparse.ArgumentParser:
    """The options of the commands, the shared ones declared once."""
    common, graphs, compared, rounds = (argparse.ArgumentParser(add_help=False) for _ in range(4))
    common.add_argument("--device", default="auto", choices=["auto", "cpu", "cuda", "mps"])
    common.add_argument("--threads", type=_at_least(1), help="CPU threads (default: all)")
    common.add_argument("--results", type=Path, help="file to append to (default: in results/)")
    common.add_argument("--json", action="store_true", help="print JSON instead of tables")
    graphs.add_argument("graphs", nargs="*", default=["csbm-heterophilic"], help=f"or {', '.join(SIZES)}")
    compared.add_argument("--reference", action=argparse.BooleanOptionalAction, default=True)
    rounds.add_argument("--rounds", type=_at_least(1), default=5, help="rounds to take medians over")
    main = argparse.ArgumentParser(
        prog="bench.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = main.add_subparsers(required=True)

    def command(measure: Callable[..., Iterator[Record]], *shared: argparse.ArgumentParser) -> Any:
        made = commands.add_parser(measure.__name__, parents=[*shared, common], description=measure.__doc__)
        made.set_defaults(measure=measure)
        return made

    timed = command(speed, graphs, compared, rounds)
    timed.add_argument("--methods", default="spgcl,bgrl,grace", metavar="A,B,C")
    timed.add_argument("--end-to-end", action="store_true", help="also run fit and eval in a new process")
    timed.add_argument("--precision", default="float32", choices=["float32", "tf32"], help="on CUDA")
    peak = command(memory, graphs, compared)
    peak.add_argument("--methods", default="spgcl", metavar="A,B,C")
    peak.add_argument("--steps", type=_at_least(1), help="steps to train (default: 20)")
    growth = command(scale, rounds)
    growth.add_argument("nodes", nargs="*", type=_at_least(1000), help=f"sizes (default: {SCALES})")
    for made in (timed, peak, growth):
        made.add_argument("--set", action="append", metavar="NAME=VALUE", help="a hyper-parameter")
    walked = command(walks, graphs, rounds)
    walked.add_argument("--walks", type=_at_least(1), default=10, help="from every node")
    walked.add_argument("--length", type=_at_least(2), default=80, help="nodes of a walk")
    return main


def main(words: Sequence[str] | None = None) -> int:
    """Run a command; what a user can fix is one line on stderr and exit code 2."""
    arguments = parser().parse_args(words)
    name = arguments.measure.__name__
    path = arguments.results or RESULTS / f"{name}.jsonl"
    records = []
    try:
        device = Running(arguments.device, arguments.threads).start()
        for record in arguments.measure(arguments, device):
            record |= {"command": command_line("bench.py", path), **machine(device)}
            append(path, record)
            records.append(record)
            _show("")
            if not arguments.json:
                # The tables of docs/speed.md.
                print(SECTIONS[name]([record]), flush=True)
    except (InputError, OSError) as error:
        print(f"bench.py: {error}", file=sys.stderr)
        return 2
    if arguments.json:
        print_json(records)
    return 0


if __name__ == "__main__":
    sys.exit(main())
