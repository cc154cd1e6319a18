"""`spgcl ingest`: edge lists and features become a store, a graph that may be larger than memory."""

from pathlib import Path
from typing import Annotated

import typer

from spgcl.cli.options import JsonOption, takes_options
from spgcl.cli.output import note, print_json
from spgcl.errors import InputError
from spgcl.face.progress import progress_line
from spgcl.runs.options import GraphOptions


@takes_options
def ingest(
    edges: Annotated[list[str], typer.Argument(help="Edge lists: files or patterns such as 'edges/*.csv'.")],
    out: Annotated[Path, typer.Option("--out", help="Folder of the store.")],
    *,
    options: GraphOptions,
    half: Annotated[bool, typer.Option("--float16", help="Keep features in float16.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier store.")] = False,
    json: JsonOption = False,
) -> None:
    """Build a store, which every command takes as a graph, in bounded memory."""
    from spgcl.io.draft import Options
    from spgcl.runs.sources import memory_of
    from spgcl.scale.ingest import Sources
    from spgcl.scale.ingest import ingest as build

    for name in ("attributes", "label"):
        if getattr(options, name):
            raise InputError(f"--{name} does not apply to edge lists; leave it out")
    sources = Sources(
        edges,
        None if options.features is None else str(options.features),
        options.structural,
        Options(options.source, options.target, options.weight, bipartite=options.bipartite),
        id_column=options.id,
        feature_columns=options.columns.split(",") if options.columns else None,
        directed=options.directed,
        half=half,
    )
    with progress_line(f"ingest {out}", quiet=json) as update:
        progress = update and (lambda what: update(description=f"ingest {out}: {what}"))
        store = build(sources, out, memory=memory_of(options), overwrite=overwrite, progress=progress)
    for remark in store.notes:
        note(remark)
    if json:
        print_json(
            {"store": str(out), "nodes": store.num_nodes, "edges": store.num_edges, "bytes": store.bytes}
        )
    else:
        size = f"{store.bytes / 2**20:,.1f} MiB"
        print(f"{store.num_nodes:,} nodes and {store.num_edges:,} edges written to {out} ({size})")
