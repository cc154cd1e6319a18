"""`spgcl datasets`: list, fetch, verify and measure the benchmark data."""

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spgcl.cli.options import JsonOption, data_set_names
from spgcl.cli.output import note, print_json, print_table
from spgcl.errors import InputError, unknown
from spgcl.face.progress import Update, progress_line

if TYPE_CHECKING:
    from spgcl.datasets.fetch import Progress

app = typer.Typer(help="The benchmark data: list, fetch, verify, stats.", no_args_is_help=True)

NamesArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="NAME", help="Data sets (default: all).", autocompletion=data_set_names),
]
FetchedArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="NAME", help="Data sets to download; or --all.", autocompletion=data_set_names),
]


@app.command("list")
def list_datasets(json: JsonOption = False) -> None:
    """List the data sets, and which of them are on disk."""
    from spgcl.datasets.entries import entries
    from spgcl.datasets.storage import data_folder, is_on_disk
    from spgcl.datasets.synthetic import BUILT_IN

    rows: list[list[Any]] = [
        [name, built["num_nodes"], "built in", "accuracy", "ten seeded 10/10/80", "-", "generated"]
        for name, built in BUILT_IN.items()
    ]
    for name, known in entries().items():
        there = is_on_disk(known, known.files)
        rows.append([name, known.nodes, there, known.metric, known.splits, known.licence, known.repository])
    if json:
        names = ("name", "nodes", "on_disk", "metric", "splits", "licence", "source")
        print_json([dict(zip(names, row, strict=True)) for row in rows])
        return
    # Without the source, the widest column, the table fits 80 columns.
    columns = ["data set", "nodes", "on disk", "metric", "splits", "licence"]
    print_table(f"data folder: {data_folder()}", columns, [row[:-1] for row in rows])


@app.command("fetch")
def fetch_datasets(
    names: FetchedArgument = None,
    mirror: Annotated[
        str | None,
        typer.Option(
            "--mirror",
            metavar="SOURCE",
            help="Copy the files from a folder or an http(s) address laid out like the data folder.",
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Fetch every data set.")] = False,
    json: JsonOption = False,
) -> None:
    """Download data sets from their publishers into the data folder, and check every file."""
    from spgcl.datasets.entries import entries
    from spgcl.datasets.fetch import fetch
    from spgcl.datasets.storage import data_folder

    if bool(names) == every:
        raise InputError("name the data sets to fetch, or --all (see `spgcl datasets list`)")
    chosen = list(entries()) if every else _from_files(names)
    written = {}
    for name in chosen:
        with progress_line(name, total=None, amount="bytes") as update:
            written[name] = fetch(name, mirror=mirror, progress=update and _file_by_file(name, update))
    if json:
        print_json({"folder": str(data_folder()), "written": written})
        return
    rows = [
        [name, len(paths), "fetched and checked" if paths else "already there"]
        for name, paths in written.items()
    ]
    print_table(f"data folder: {data_folder()}", ["data set", "files written", "state"], rows)


def _file_by_file(name: str, update: Update) -> "Progress":
    return lambda file, done, total: update(description=f"{name}: {file}", completed=done, total=total)


@app.command("verify")
def verify_datasets(names: NamesArgument = None, json: JsonOption = False) -> None:
    """Check files against their published checksums; exit 1 for wrong bytes or an absent NAME."""
    from spgcl.datasets.entries import entries
    from spgcl.datasets.storage import data_folder, find

    chosen = _from_files(names) if names else list(entries())
    records = []
    for name in chosen:
        for file in entries()[name].all_files:
            state, path = find(data_folder() / name, file)
            records.append({"name": name, "file": str(path.relative_to(data_folder())), "state": state})
    bad = ("wrong bytes", "absent") if names else ("wrong bytes",)
    failures = [record for record in records if record["state"] in bad]
    if json:
        print_json({"folder": str(data_folder()), "files": records})
    else:
        print_table(f"data folder: {data_folder()}", ["data set", "files", "state"], _summary(records))
        for record in failures:
            note(f"{record['file']}: {record['state']}; run `spgcl datasets fetch {record['name']}`")
    if failures:
        raise typer.Exit(1)


def _summary(records: list[dict[str, str]]) -> list[list[Any]]:
    """One row per data set: its name, how many files it has, and their states."""
    rows = []
    for name in dict.fromkeys(record["name"] for record in records):
        states = Counter(record["state"] for record in records if record["name"] == name)
        counted = [f"{count} {state}" for state, count in states.items()]
        rows.append([name, states.total(), ", ".join(counted) if len(states) > 1 else next(iter(states))])
    return rows


@app.command("stats")
def measure_datasets(names: NamesArgument = None, json: JsonOption = False) -> None:
    """Measure data sets and compare them with the paper's table; differences are explained."""
    from spgcl.datasets.comparison import compare
    from spgcl.datasets.entries import entries
    from spgcl.datasets.loading import names as known_names
    from spgcl.datasets.storage import is_on_disk
    from spgcl.evaluation.statistics import table_figures

    for name in names or []:
        if name not in known_names():
            raise unknown("data set", name, known_names())
    if not names:
        absent = [name for name, known in entries().items() if not is_on_disk(known, known.files)]
        names = [name for name in known_names() if name not in absent]
        if absent:
            note(f"not on disk: {', '.join(absent)} (run `spgcl datasets fetch NAME`)")
    compared = {name: compare(name, table_figures) for name in names}
    if json:
        print_json(
            {name: {key: asdict(one) for key, one in figures.items()} for name, figures in compared.items()}
        )
        return
    columns = ["figure", "loaded", "paper", "counted as paper", "why the paper differs"]
    for name, figures in compared.items():
        rows = [
            [key.replace("_", " "), one.loaded, one.paper, one.counted_as_paper, one.why]
            for key, one in figures.items()
        ]
        print_table(name, columns, rows)
        print()


def _from_files(names: list[str] | None) -> list[str]:
    from spgcl.datasets.entries import entry
    from spgcl.datasets.synthetic import BUILT_IN

    for name in names or []:
        if name in BUILT_IN:
            raise InputError(f"{name} is generated when it is used; there is nothing to fetch")
    return [entry(name).name for name in names or []]
