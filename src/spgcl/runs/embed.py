"""What a finished run is used for: vectors for another or a grown graph, and nodes that are similar."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from spgcl.engine.device import choose_device
from spgcl.errors import InputError, note
from spgcl.evaluation.neighbours import most_similar
from spgcl.graph import Graph
from spgcl.methods.memory import explained_memory
from spgcl.runs.alike import resolve_alike
from spgcl.runs.options import GraphOptions
from spgcl.runs.record import load_method, read_results, read_run, unfinished
from spgcl.training import fitting


def embed_graph(
    folder: Path,
    graph: str,
    options: GraphOptions | None = None,
    *,
    device: str = "auto",
    threads: int | None = None,
) -> tuple[Graph, NDArray[np.float32]]:
    """Embed a graph with the weights of a run and without training; the graph as read, and its vectors.

    Args:
        folder: The run.
        graph: A data set's name, or a path.
        options: How its files are read; otherwise as the run's own graph was.
        device: Where to compute.
        threads: CPU threads; those of the run by default.
    """
    record = read_run(folder)
    # Bytes depend on both: on the run's own graph they are to be those that `fit` wrote.
    torch.set_num_threads(threads or record.threads)
    where = choose_device("cpu" if device == "auto" and record.device == "cpu" else device)
    read = resolve_alike(graph, options or GraphOptions(), folder, record.graph).graph
    for remark in read.notes:
        note(remark)
    width = record.graph["num_features"]
    if read.num_features != width:
        raise InputError(f"{graph} has {read.num_features} features, but {folder} was trained on {width}")
    method = load_method(folder).to(where)
    note(unfinished(folder, record))
    fitting.require_embeddable(record.method, method.inductive, read.digest == record.graph["digest"])
    with explained_memory(type(method), record.settings):
        prepared = method.prepare(read, where)
    return read, fitting.embed(method, prepared, record.settings)


def similar_nodes(folder: Path, node: str, count: int = 10) -> list[dict[str, Any]]:
    """The nodes nearest to a node by cosine similarity of a run's embeddings, exact."""
    _, embeddings, node_ids = read_results(folder)
    found = [index for index, known in enumerate(node_ids.tolist()) if str(known) == node]
    if not found:
        raise InputError(f"no node {node!r} in {folder}; its ids look like {node_ids.tolist()[0]!r}")
    rows, similarities = most_similar(embeddings, found[0], count)
    return [
        {"node": known, "similarity": value}
        for known, value in zip(node_ids[rows].tolist(), similarities.tolist(), strict=True)
    ]
