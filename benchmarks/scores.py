"""Fit and score methods on data sets, one line per training, appended to results/scores.jsonl.

Supervised methods are scored by their own predictions, all others under both probes. A training whose line is
there is not repeated.

python benchmarks/scores.py --preset published --seeds 3 cora chameleon
python benchmarks/scores.py --seeds 3 cora                      # the defaults
python benchmarks/scores.py --method grace --method dgi --preset own cora chameleon
python benchmarks/scores.py --preset validated --seeds 1 grace:squirrel dgi:coauthor-cs
"""

import sys
from pathlib import Path
from typing import Any

from record import RESULTS, command_line
from search_tables import best_draw
from spaces import DRAWN, own_preset
from trainings import argument_parser, asked_pairs

from spgcl.cli.options import given_settings
from spgcl.experiments.execute import Job, execute
from spgcl.experiments.plan import Run
from spgcl.experiments.results import read_lines


def job(
    method: str, graph: str, preset: str | None, given: dict[str, Any], seed: int, *, tenths: bool, path: Path
) -> Job:
    """A training; for the best draw with the settings that the search drew, under the name it has."""
    more = {"command": command_line("scores.py", path)}
    options = {"tenths": True} if tenths else {}
    if preset == DRAWN:
        chosen = {**drawn_settings(method, graph), **given}
        named = {"preset": DRAWN, "given": given}
        return Job(Run("", "scores", graph, method, None, chosen, seed, options), path, {**more, **named})
    return Job(Run("", "scores", graph, method, preset, given, seed, options), path, more)


def drawn_settings(method: str, graph: str) -> dict[str, Any]:
    """What the search drew for its best draw."""
    records = read_lines(RESULTS / "search.jsonl")
    best = best_draw(records, method, graph)
    if best is None:
        raise SystemExit(f"the search of {method} on {graph} is not finished")
    wanted = (method, graph, best)
    found: dict[str, Any] = next(
        record["settings"]
        for record in records
        if (record["method"], record["dataset"], record["trial"]) == wanted
    )
    return found


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument(
        "--preset",
        action="append",
        help="repeat for several; 'defaults' for none, 'own' for published if it has the graph, else none"
        ", 'drawn' for the best of the draws that every method has",
    )
    parser.add_argument("--seeds", type=int, default=3, help="trainings of each")
    parser.add_argument("--first-seed", type=int, default=0, help="to continue earlier trainings")
    parser.add_argument("--set", action="append", metavar="NAME=VALUE")
    parser.add_argument(
        "--tenths",
        action="store_true",
        help="ten random splits with a tenth of the nodes labelled instead of the graph's own"
        "; such lines go to results/tenths.jsonl",
    )
    parser.add_argument("--device", default="auto")
    parser.add_argument(
        "--workers", type=int, default=1, help="trainings at once; above 1, times mean little"
    )
    parser.add_argument("--results", type=Path)
    arguments = parser.parse_args()
    path = arguments.results or RESULTS / ("tenths.jsonl" if arguments.tenths else "scores.jsonl")
    given = given_settings(arguments.set)
    jobs = [
        job(method, name, preset_of(preset, method, name), given, seed, tenths=arguments.tenths, path=path)
        for preset in arguments.preset or ["defaults"]
        for method, name in asked_pairs(arguments.datasets, arguments.method)
        for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    ]
    failures = execute(jobs, device=arguments.device, workers=arguments.workers, done=report)
    for failure in failures:
        print(*words(failure.run), "failed:", failure.message, file=sys.stderr)
    sys.exit(bool(failures))


def report(finished: Job) -> None:
    """One line per training that is over."""
    print(*words(finished.run), "over", flush=True)


def words(run: Run) -> tuple[Any, ...]:
    """What tells a training from the others."""
    return run.method, run.graph, run.preset, run.seed


def preset_of(asked: str, method: str, dataset: str) -> str | None:
    """The preset that an option stands for."""
    if asked == "own":
        return own_preset(method, dataset)
    return None if asked == "defaults" else asked


if __name__ == "__main__":
    main()
