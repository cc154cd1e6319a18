"""`spgcl embed`: vectors for another or a grown graph with a trained run."""

from pathlib import Path
from typing import Annotated

import typer

from spgcl.cli.options import GraphArgument, RunArgument, Running, takes_options
from spgcl.cli.output import print_json
from spgcl.runs.options import GraphOptions


@takes_options
def embed(
    run: RunArgument,
    graph: GraphArgument,
    out: Annotated[Path, typer.Option("--out", help="File to write: .parquet, .npy or .csv.")],
    *,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file if it exists.")] = False,
    options: GraphOptions,
    running: Running,
) -> None:
    """Embed a graph, old and new nodes alike, with the weights of a run and without training."""
    from spgcl.io import require_free, write_embedding_file
    from spgcl.runs.embed import embed_graph
    from spgcl.runs.plane import principal_plane

    require_free(out, overwrite=overwrite)
    read, embeddings = embed_graph(run, graph, options, device=running.device, threads=running.threads)
    plane = principal_plane(embeddings) if out.suffix == ".parquet" else None
    write_embedding_file(out, embeddings, read.node_ids, coordinates=plane)
    nodes, width = embeddings.shape
    if running.json:
        print_json({"run": str(run), "file": str(out), "nodes": nodes, "width": width})
    else:
        print(f"{nodes:,} vectors of width {width} written to {out}")
