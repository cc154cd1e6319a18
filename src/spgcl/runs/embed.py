"""Uses of a finished run: embeddings of another or a grown graph, and similar nodes."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spgcl.engine.device import choose_device, use_threads
from spgcl.errors import InputError, note
from spgcl.evaluation.neighbours import most_similar
from spgcl.files import steady
from spgcl.graph import Graph
from spgcl.io.shards import has_shards, read_shards
from spgcl.runs.alike import resolve_alike
from spgcl.runs.folder import settle
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
    """Embed a graph with the weights of a run, without training; returns the graph and the embeddings.

    Args:
        folder: The run.
        graph: A data set's name, or a path.
        options: How its files are read; options left out are those of the run.
        device: Where to compute.
        threads: CPU threads; those of the run by default.
    """
    settle(folder)
    with steady(folder):
        run, method = read_run(folder), load_method(folder)
    # Both decide the bytes, which for the run's own graph are to be those that `fit` wrote.
    use_threads(threads or run.threads)
    target = choose_device("cpu" if device == "auto" and run.device == "cpu" else device)
    read = resolve_alike(graph, options or GraphOptions(), folder, run.graph).graph
    for remark in (*read.notes, unfinished(folder, run)):
        note(remark)
    digest = run.graph["digest"]
    return read, fitting.embed(
        run.method, method.to(target), read, target, digest=digest, settings=run.settings
    )


def similar_nodes(folder: Path, node: str, count: int = 10) -> list[dict[str, Any]]:
    """The nodes nearest to a node by cosine similarity of a run's embeddings, exact."""
    if has_shards(folder):
        with steady(folder):
            return _similar_in_shards(folder, node, count)
    _, embeddings, node_ids = read_results(folder)
    ids = node_ids.tolist()
    index = next((index for index, known in enumerate(ids) if str(known) == node), None)
    if index is None:
        raise InputError(f"no node {node!r} in {folder}; its ids look like {ids[0]!r}")
    rows, similarities = most_similar(embeddings, index, count)
    return [
        {"node": ids[row], "similarity": value}
        for row, value in zip(rows.tolist(), similarities.tolist(), strict=True)
    ]


def _similar_in_shards(folder: Path, node: str, count: int) -> list[dict[str, Any]]:
    """The same, with one file of vectors in memory at a time."""
    wanted = None
    for ids, vectors in read_shards(folder):
        example, found = ids.tolist()[0], np.flatnonzero(ids.astype(str) == node)
        if len(found):
            wanted = vectors[found[:1]]
            break
    if wanted is None:
        raise InputError(f"no node {node!r} in {folder}; its ids look like {example!r}")
    nearest: list[dict[str, Any]] = []
    for ids, vectors in read_shards(folder):
        others = ids.astype(str) != node
        rows, similarities = most_similar(np.concatenate([wanted, vectors[others]]), 0, count)
        listed = ids[others][rows - 1].tolist()
        pairs = zip(listed, similarities.tolist(), strict=True)
        nearest += [{"node": other, "similarity": value} for other, value in pairs]
        # A stable sort: equally similar nodes stay in row order.
        nearest = sorted(nearest, key=lambda row: -row["similarity"])[:count]
    return nearest
