"""`spgcl embed`: vectors for another or a grown graph with a trained run."""

from pathlib import Path
from typing import Annotated

import typer

from spgcl.cli.options import (
    AttributesOption,
    DeviceOption,
    DirectedOption,
    FeaturesOption,
    IdOption,
    JsonOption,
    SourceOption,
    StructuralOption,
    TargetOption,
    ThreadsOption,
    WeightOption,
)
from spgcl.cli.output import print_json
from spgcl.runs.options import GraphOptions


def embed(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    graph: Annotated[str, typer.Argument(help="A data set's name, or a path to a graph.")],
    out: Annotated[Path, typer.Option("--out", help="File to write: .parquet, .npy or .csv.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file if it exists.")] = False,
    features: FeaturesOption = None,
    structural: StructuralOption = None,
    source: SourceOption = None,
    target: TargetOption = None,
    weight: WeightOption = None,
    attributes: AttributesOption = None,
    id_: IdOption = None,
    directed: DirectedOption = False,
    device: DeviceOption = "auto",
    threads: ThreadsOption = None,
    json: JsonOption = False,
) -> None:
    """Embed a graph, old and new nodes alike, with the weights of a run and without training."""
    from spgcl.io import require_free, write_embedding_file
    from spgcl.runs.embed import embed_graph
    from spgcl.runs.plane import plane_of

    require_free(out, overwrite=overwrite)
    options = GraphOptions(features, structural, source, target, weight, attributes, id_, directed)
    read, embeddings = embed_graph(run, graph, options, device=device, threads=threads)
    plane = plane_of(run, embeddings) if out.suffix == ".parquet" else None
    write_embedding_file(out, embeddings, read.node_ids, coordinates=plane)
    if json:
        print_json(
            {"run": str(run), "file": str(out), "nodes": len(embeddings), "width": embeddings.shape[1]}
        )
    else:
        print(f"{len(embeddings):,} vectors of width {embeddings.shape[1]} written to {out}")
