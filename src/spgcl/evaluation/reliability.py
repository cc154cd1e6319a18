"""Where the signal of a graph lives, without labels: split-half reliability."""

from typing import Any

import torch
from torch import Tensor

from spgcl.engine.similarity import comparable_rows
from spgcl.errors import InputError
from spgcl.evaluation.verdict import unmeasured, verdict
from spgcl.graph import Graph
from spgcl.graph.scaling import column_scales, unit_features
from spgcl.methods import Method
from spgcl.methods.parts.halves import REPEATS, agreements, channels_on, incomparable
from spgcl.methods.parts.weights import channel_record


def split_half(
    graph: Any, *, repeats: int = REPEATS, seed: int = 0, device: str | torch.device = "cpu"
) -> dict[str, Any]:
    """How well a node's features, what its neighbours show, and degrees repeat themselves.

    The graph is split into halves with half of the edges and half of the feature columns each. What is signal
    looks alike in both, by unbiased linear CKA; noise does not. The record has, per channel, the mean and the
    deviation over repeats and the weight that it would get; and a verdict in words.

    Args:
        graph: Anything that `Graph.of` reads.
        repeats: Different halves, each as good as the others.
        seed: Decides the halves.
        device: Where to compute.
    """
    graph = Graph.of(graph)
    if repeats < 1:
        raise InputError(f"repeats is {repeats}; it must be 1 or more")
    problem = incomparable(graph)
    if problem:
        return {"channels": {}, "verdict": unmeasured(problem)}
    scaled = graph.with_features(unit_features(graph.features, *column_scales(graph.features)))
    found = agreements(scaled, channels_on(torch.device(device)), repeats=repeats, seed=seed)
    channels = channel_record(found)
    return {"channels": channels, "verdict": verdict(channels)}


def mean_cosine(vectors: Any) -> float:
    """Mean cosine similarity of two different nodes: 1 if all vectors point in one direction."""
    rows = torch.nn.functional.normalize(comparable_rows(torch.as_tensor(vectors).double()), dim=1)
    count = len(rows)
    pairs = rows.sum(dim=0).square().sum() - rows.square().sum()
    return round(float(pairs) / max(1, count * (count - 1)), 4)


def vector_reliability(
    method: Method,
    graph: Graph,
    *,
    repeats: int = REPEATS,
    seed: int = 0,
    device: str | torch.device = "cpu",
) -> dict[str, float] | None:
    """The same for the vectors that a trained method makes of the halves; None if it cannot embed them.

    A high value does not make vectors useful: a collapsed embedding repeats itself as well.
    """
    if not method.inductive or method.supervised or incomparable(graph):
        return None
    target = torch.device(device)

    def channels(half: Graph) -> list[list[Tensor]]:
        vectors = comparable_rows(method.embed(method.prepare(half, target)))
        return [[torch.nn.functional.normalize(vectors, dim=1)]]

    values = agreements(graph, channels, repeats=repeats, seed=seed)[:, 0, 0]
    return {"reliability": round(float(values.mean()), 4), "deviation": round(float(values.std()), 4)}
