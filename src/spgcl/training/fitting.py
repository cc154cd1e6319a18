"""The one way to fit: create a method, prepare a graph for it, train, embed."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from spgcl.engine.device import arithmetic
from spgcl.errors import InputError, note
from spgcl.graph import Graph
from spgcl.graph.matching import match_features, require_comparable, require_same_direction
from spgcl.methods import Method, Prepared, Supervision, create, find
from spgcl.methods.memory import explained_memory
from spgcl.training.advice import one_column, require_finite, sameness, sized_defaults, slow_steps
from spgcl.training.loop import Controls, History, train


@dataclass(frozen=True, eq=False)
class Fitted:
    """A trained method and what it was trained on.

    Attributes:
        method: The method, with its weights on the device.
        prepared: What it computed once for the graph.
        seconds: Wall-clock time of `prepare` and `train`.
    """

    method: Method
    prepared: Prepared
    settings: Mapping[str, Any]
    history: History
    seconds: dict[str, float]

    def embed(self) -> NDArray[np.float32]:
        """Embeddings of the training graph's nodes."""
        return _embed(self.method, self.prepared, self.settings)


def fit(
    name: str,
    graph: Graph,
    *,
    settings: Mapping[str, Any],
    seed: int,
    device: torch.device,
    supervision: Supervision | None = None,
    precision: str = "auto",
    deterministic: bool = False,
    controls: Controls | None = None,
    prepare: Callable[[Method], Prepared] | None = None,
) -> Fitted:
    """Create a method and train it on a graph, with notes before and after.

    Args:
        name: One of METHODS.
        graph: The graph to train on.
        settings: Hyper-parameters; those left out have the method's defaults.
        seed: Decides initial weights and every draw.
        device: Where to compute.
        supervision: Labels, for a supervised method.
        precision: See `spgcl.engine.device.arithmetic`.
        deterministic: See `spgcl.engine.device.arithmetic`.
        controls: Progress, checkpoints, observations.
        prepare: Makes the graph ready for the method, if the method does not do so itself.
    """
    note(one_column(graph, settings))
    note(sized_defaults(find(name), graph, settings))
    with explained_memory(find(name), settings):
        started = time.perf_counter()
        method = create(
            name,
            graph.num_features,
            num_nodes=graph.num_nodes,
            task=supervision.task if supervision else None,
            seed=seed,
            settings=settings,
        ).to(device)
        prepared = prepare(method) if prepare else method.prepare(graph, device, supervision)
        ready = time.perf_counter()
        note(slow_steps(method, graph, device))
        with arithmetic(device, precision, deterministic=deterministic):
            history = train(method, prepared, seed=seed, **vars(controls or Controls()))
    seconds = {"prepare": ready - started, "train": time.perf_counter() - ready}
    return Fitted(method, prepared, settings, history, seconds)


def as_learned(
    graph: Graph, *, digest: str, directed: bool, num_features: int, feature_names: Sequence[str]
) -> Graph:
    """A graph to embed with learned weights, its feature columns in the order of the training graph's.

    All but the graph describes the training graph; its features may have had no names.
    """
    require_same_direction(graph, directed=directed)
    require_comparable(graph.feature_names, same_graph=graph.digest == digest)
    matched = match_features(graph, feature_names)
    if matched.num_features != num_features:
        raise InputError(
            f"the graph has {matched.num_features} features, but {num_features} were learned from"
        )
    return matched


def embed(
    name: str,
    method: Method,
    graph: Graph,
    device: torch.device,
    *,
    digest: str,
    settings: Mapping[str, Any] | None = None,
) -> NDArray[np.float32]:
    """Embeddings of the nodes of the training graph, which has the digest, or of another if inductive.

    Settings are used for advice if memory runs out.
    """
    if not method.inductive and graph.digest != digest:
        raise InputError(f"{name} is transductive: it embeds its training graph only; fit it on this one")
    with explained_memory(type(method), settings or {}):
        prepared = method.to(device).prepare(graph, device)
    return _embed(method, prepared, settings or {})


def _embed(method: Method, prepared: Prepared, settings: Mapping[str, Any]) -> NDArray[np.float32]:
    with explained_memory(type(method), settings):
        vectors: NDArray[np.float32] = method.embed(prepared).cpu().numpy()
    require_finite(vectors, method)
    note(sameness(vectors))
    return vectors
