"""`spgcl datasets`: list, fetch, verify and measure the benchmark data."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from spgcl.cli.options import JsonOption
from spgcl.cli.output import note, print_json, print_table
from spgcl.cli.progress import Update, progress_line
from spgcl.errors import InputError, unknown

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from spgcl.datasets.fetch import Progress
    from spgcl.graph import Graph

app = typer.Typer(help="The benchmark data: list, fetch, verify, stats.", no_args_is_help=True)

NamesArgument = Annotated[list[str] | None, typer.Argument(metavar="NAME", help="Data sets (default: all).")]
FetchedArgument = Annotated[
    list[str] | None, typer.Argument(metavar="NAME", help="Data sets to download; or --all.")
]


@app.command("list")
def list_datasets(json: JsonOption = False) -> None:
    """List the data sets, and which of them are on disk."""
    from spgcl.datasets.entries import entries
    from spgcl.datasets.storage import data_folder, is_on_disk
    from spgcl.datasets.synthetic import BUILT_IN

    records: list[dict[str, Any]] = [
        _listed(
            name, BUILT_IN[name]["num_nodes"], "built in", "accuracy", "ten seeded 10/10/80", "-", "generated"
        )
        for name in BUILT_IN
    ]
    records += [
        _listed(
            name,
            known.nodes,
            is_on_disk(known, known.files),
            known.metric,
            known.splits,
            known.licence,
            known.repository,
        )
        for name, known in entries().items()
    ]
    if json:
        print_json(records)
        return
    # The publisher's repository, the widest column, is left to --json and the documents.
    columns = ["data set", "nodes", "on disk", "metric", "splits", "licence"]
    rows = [list(record.values())[: len(columns)] for record in records]
    print_table(f"data folder: {data_folder()}", columns, rows)


def _listed(
    name: str, nodes: int, on_disk: bool | str, metric: str, splits: str, licence: str, source: str
) -> dict[str, Any]:
    return {
        "name": name,
        "nodes": nodes,
        "on_disk": on_disk,
        "metric": metric,
        "splits": splits,
        "licence": licence,
        "source": source,
    }


@app.command("fetch")
def fetch_datasets(
    names: FetchedArgument = None,
    mirror: Annotated[
        str | None,
        typer.Option(
            "--mirror",
            metavar="PLACE",
            help="Take the files from a folder or an http(s) address laid out as the data folder is.",
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Every data set instead of named ones.")] = False,
    json: JsonOption = False,
) -> None:
    """Download data sets from their publishers into the data folder; files are used once checked."""
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
        [name, len(paths), "fetched and checked" if paths else "was there"] for name, paths in written.items()
    ]
    print_table(f"data folder: {data_folder()}", ["data set", "files written", ""], rows)


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
    failures = [
        record
        for record in records
        if record["state"] == "wrong bytes" or (names and record["state"] != "ok")
    ]
    if json:
        print_json({"folder": str(data_folder()), "files": records})
    else:
        print_table(f"data folder: {data_folder()}", ["data set", "files", "state"], _summary(records))
        for record in failures:
            note(f"{record['file']}: {record['state']}; run `spgcl datasets fetch {record['name']}`")
    if failures:
        raise typer.Exit(1)


def _summary(records: list[dict[str, str]]) -> list[list[Any]]:
    rows = []
    for name in dict.fromkeys(record["name"] for record in records):
        states = [record["state"] for record in records if record["name"] == name]
        counts = {state: states.count(state) for state in ("ok", "absent", "wrong bytes") if state in states}
        said = (
            next(iter(counts))
            if len(counts) == 1
            else ", ".join(f"{n} {state}" for state, n in counts.items())
        )
        rows.append([name, len(states), said])
    return rows


@app.command("stats")
def measure_datasets(names: NamesArgument = None, json: JsonOption = False) -> None:
    """Measure data sets, beside the paper's table, with the reason where a figure differs."""
    from spgcl.datasets.comparison import as_record, compare
    from spgcl.datasets.entries import entries
    from spgcl.datasets.loading import names as known_names
    from spgcl.datasets.storage import is_on_disk

    for name in names or []:
        if name not in known_names():
            raise unknown("data set", name, known_names())
    absent = (
        [] if names else [name for name, known in entries().items() if not is_on_disk(known, known.files)]
    )
    chosen = names or [name for name in known_names() if name not in absent]
    compared = {name: compare(name, measure) for name in chosen}
    if absent:
        note(f"not on disk: {', '.join(absent)} (spgcl datasets fetch NAME)")
    if json:
        print_json({name: as_record(figures) for name, figures in compared.items()})
        return
    columns = ["figure", "loaded", "paper", "counted as paper", "why the paper differs"]
    for name, figures in compared.items():
        rows = [
            [figure.name.replace("_", " "), figure.loaded, figure.paper, figure.counted_as_paper, figure.why]
            for figure in figures
        ]
        print_table(name, columns, rows)
        print()


def measure(graph: "Graph", labels: "NDArray[np.int64]") -> dict[str, float]:
    """The figures of the paper's table of data sets, over distinct edges."""
    from spgcl.evaluation.statistics import edge_homophily, node_homophily

    return {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "classes": int(labels.max()) + 1,
        "features": graph.num_features,
        "edge_homophily": edge_homophily(graph, labels),
        "node_homophily": node_homophily(graph, labels),
        "average_degree": 2 * graph.num_edges / graph.num_nodes,
    }


def _from_files(names: list[str] | None) -> list[str]:
    from spgcl.datasets.entries import entry
    from spgcl.datasets.synthetic import BUILT_IN

    for name in names or []:
        if name in BUILT_IN:
            raise InputError(f"{name} is generated, not fetched: it needs no files")
    return [entry(name).name for name in names or []]
