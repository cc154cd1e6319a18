"""`spgcl embed`: vectors for another or a grown graph with a trained run."""

from pathlib import Path
from typing import Annotated

import typer

from spgcl.cli.options import (
    AttributesOption,
    DeviceOption,
    DirectedOption,
    FeaturesOption,
    GraphOptions,
    IdOption,
    JsonOption,
    SourceOption,
    StructuralOption,
    TargetOption,
    ThreadsOption,
    WeightOption,
)
from spgcl.cli.output import note, print_json
from spgcl.errors import InputError


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
    import torch

    from spgcl.engine.device import choose_device
    from spgcl.estimator import require_embeddable
    from spgcl.io import require_free, write_embedding_file
    from spgcl.methods.memory import explained_memory
    from spgcl.runs.alike import resolve_alike
    from spgcl.runs.plane import plane_of
    from spgcl.runs.record import load_method, read_run, unfinished
    from spgcl.training.advice import require_finite, sameness

    require_free(out, overwrite=overwrite)
    record = read_run(run)
    # Bytes depend on both: on the run's own graph they are to be those that `fit` wrote.
    torch.set_num_threads(threads or record.threads)
    where = choose_device("cpu" if device == "auto" and record.device == "cpu" else device)
    options = GraphOptions(features, structural, source, target, weight, attributes, id_, directed)
    loaded = resolve_alike(graph, options, run, record.graph)
    for remark in loaded.graph.notes:
        note(remark)
    width = record.graph["num_features"]
    if loaded.graph.num_features != width:
        raise InputError(
            f"{graph} has {loaded.graph.num_features} features, but {run} was trained on {width}"
        )
    method = load_method(run).to(where)
    if remark := unfinished(run, record):
        note(remark)
    require_embeddable(record.method, method.inductive, loaded.graph.digest == record.graph["digest"])
    with explained_memory(type(method), record.settings):
        embeddings = method.embed(method.prepare(loaded.graph, where)).cpu().numpy()
    require_finite(embeddings, method)
    if said := sameness(embeddings):
        note(said)
    plane = plane_of(run, embeddings) if out.suffix == ".parquet" else None
    write_embedding_file(out, embeddings, loaded.graph.node_ids, coordinates=plane)
    if json:
        print_json(
            {"run": str(run), "file": str(out), "nodes": len(embeddings), "width": embeddings.shape[1]}
        )
    else:
        print(f"{len(embeddings):,} vectors of width {embeddings.shape[1]} written to {out}")
