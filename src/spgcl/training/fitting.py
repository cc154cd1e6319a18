"""The one way to fit: create a method, prepare a graph for it, train, embed."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from spgcl.engine.device import arithmetic
from spgcl.errors import InputError, note
from spgcl.graph import Graph
from spgcl.methods import Method, Prepared, Supervision, create, find
from spgcl.methods.memory import explained_memory
from spgcl.training.advice import one_column, require_finite, sameness, slow_steps
from spgcl.training.loop import Controls, History, train


@dataclass(frozen=True, eq=False)
class Fitted:
    """A trained method and what it was trained on.

    Attributes:
        method: The method, with its weights on the device.
        prepared: What it computed once for the graph.
        history: Losses and observations.
        seconds: Wall-clock time of `prepare` and `train`.
    """

    method: Method
    prepared: Prepared
    history: History
    seconds: dict[str, float]

    def embed(self) -> NDArray[np.float32]:
        """Embeddings of the training graph's nodes."""
        return embed(self.method, self.prepared)


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
) -> Fitted:
    """Create a method and train it on a graph, with notes on what a user should know before and after.

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
    """
    note(one_column(graph, settings))
    with explained_memory(find(name), settings):
        started = time.perf_counter()
        method, prepared = prepare(name, graph, settings, seed, device, supervision)
        ready = time.perf_counter()
        note(slow_steps(method, graph, device))
        with arithmetic(device, precision, deterministic=deterministic):
            history = train(method, prepared, seed=seed, **vars(controls or Controls()))
    seconds = {"prepare": ready - started, "train": time.perf_counter() - ready}
    return Fitted(method, prepared, history, seconds)


def prepare(
    name: str,
    graph: Graph,
    settings: Mapping[str, Any],
    seed: int,
    device: torch.device,
    supervision: Supervision | None = None,
) -> tuple[Method, Prepared]:
    """A method with fresh weights on a device, and what it computes once for a graph."""
    method = create(
        name,
        graph.num_features,
        num_nodes=graph.num_nodes,
        task=supervision.task if supervision else None,
        seed=seed,
        settings=settings,
    ).to(device)
    return method, method.prepare(graph, device, supervision)


def embed(
    method: Method, prepared: Prepared, settings: Mapping[str, Any] | None = None
) -> NDArray[np.float32]:
    """Embeddings of a graph's nodes; refused if they are not finite, noted if they are all the same."""
    with explained_memory(type(method), settings or {}):
        vectors: NDArray[np.float32] = method.embed(prepared).cpu().numpy()
    require_finite(vectors, method)
    note(sameness(vectors))
    return vectors


def require_embeddable(method: str, inductive: bool, same_graph: bool) -> None:
    """Refuse another graph where a method only has vectors for the nodes it was trained on."""
    if not inductive and not same_graph:
        raise InputError(
            f"{method} is transductive: it has vectors for the graph it was trained on; fit it on this one"
        )
