"""Uses of a finished run: embeddings of another or a grown graph, and similar nodes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spgcl.engine.device import choose_device, trained_on, use_threads
from spgcl.errors import InputError, note, shown
from spgcl.evaluation.neighbours import most_similar
from spgcl.files import steady
from spgcl.graph import Graph
from spgcl.io import read_embedding_file
from spgcl.io.shards import has_shards, read_shards
from spgcl.runs.alike import resolve_alike
from spgcl.runs.folder import settle
from spgcl.runs.options import GraphOptions
from spgcl.runs.record import Run, load_method, read_results, read_run, require_unchanged, unfinished
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
    run = read_run(folder)
    loaded = resolve_alike(graph, options or GraphOptions(), folder, run.graph)
    for remark in loaded.remarks:
        note(remark)
    return loaded.graph, embed_read(folder, run, loaded.graph, device=device, threads=threads)


def embed_read(
    folder: Path, run: Run, graph: Graph, *, device: str = "auto", threads: int | None = None
) -> NDArray[np.float32]:
    """Embed a graph that was read as the run's own was, see `spgcl.runs.alike`."""
    with steady(folder):
        require_unchanged(folder, run)
        method = load_method(folder)
    note(unfinished(folder, run))
    # Both decide the bytes, which for the run's own graph are to be those that `fit` wrote.
    use_threads(threads or run.threads)
    target = choose_device(trained_on(run.device) if device == "auto" else device)
    digest = run.graph["digest"]
    return fitting.embed(run.method, method, graph, target, digest=digest, settings=run.settings)


def similar_nodes(path: Path, nodes: Sequence[Any], count: int = 10) -> list[dict[str, Any]]:
    """The nodes nearest to each of some nodes by the embeddings of a run or of a file; see `nearest`."""
    if path.is_file():
        return nearest(*read_embedding_file(path), nodes, count, origin=path)
    if has_shards(path):
        with steady(path):
            found = {node: _similar_in_shards(path, str(node), count) for node in nodes}
        several = len(nodes) > 1
        return [({"of": node} if several else {}) | row for node, rows in found.items() for row in rows]
    _, embeddings, node_ids = read_results(path)
    return nearest(embeddings, node_ids, nodes, count, origin=path)


def nearest(
    embeddings: NDArray[np.float32],
    node_ids: NDArray[Any],
    nodes: Sequence[Any],
    count: int = 10,
    *,
    origin: Any = "these embeddings",
) -> list[dict[str, Any]]:
    """The nodes nearest to each of some nodes by cosine similarity, exact, most similar first.

    Every record has `node` and `similarity`; with several nodes also `of`, the one that it is similar to.
    """
    ids = node_ids.tolist()
    index = {str(known): row for row, known in enumerate(ids)}
    found = []
    for node in nodes:
        row = index.get(str(node))
        if row is None:
            raise InputError(f"no node {shown(str(node))} in {origin}; its ids look like {shown(ids[0])}")
        others, similarities = most_similar(embeddings, row, count)
        of = {"of": ids[row]} if len(nodes) > 1 else {}
        found += [
            {**of, "node": ids[other], "similarity": value}
            for other, value in zip(others.tolist(), similarities.tolist(), strict=True)
        ]
    return found


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
