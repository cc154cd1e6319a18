"""The only training loop."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spgcl.errors import InputError
from spgcl.graph import Graph
from spgcl.methods.method import Method, Prepared
from spgcl.methods.parameters import parameters
from spgcl.optimiser import Adam
from spgcl.stepping import Step

Observer = Callable[[Method, Prepared], dict[str, float]]

# Seconds between two looks at the losses.
LOOK_EVERY = 0.2
# Seconds of products over pairs of nodes that are announced; with fewer products, no rate is measured.
LONG_STEP = 10.0
FEW_PRODUCTS = 1e11


@dataclass
class History:
    """What training leaves behind besides weights.

    Attributes:
        losses: One a step.
        observations: What was looked at between steps, each with its `step`.
        resumed_from: Step of the checkpoint this training continued, or None.
        finished: Whether all steps were done.
    """

    losses: list[float] = field(default_factory=list)
    observations: list[dict[str, float]] = field(default_factory=list)
    resumed_from: int | None = None
    finished: bool = False


@dataclass
class Checkpoint:
    """Everything that the next step depends on, after `step` steps are done."""

    step: int
    weights: dict[str, Tensor]
    optimiser: dict[str, Tensor]
    generator: Tensor
    memory: dict[str, Tensor]
    losses: list[float]
    observations: list[dict[str, float]]

    def is_finite(self) -> bool:
        """Whether it is worth continuing from."""
        return all(bool(value.isfinite().all()) for value in self.weights.values())


def train(
    method: Method,
    prepared: Prepared,
    *,
    seed: int,
    start: Checkpoint | None = None,
    save: Callable[[Checkpoint], None] | None = None,
    save_every: float = 60.0,
    progress: Callable[[int, float], None] | None = None,
    stop: Callable[[], bool] | None = None,
    observe: Observer | None = None,
    observe_every: int = 0,
) -> History:
    """Minimise the method's loss for its number of steps, if it has any.

    Args:
        method: Moved to the device of `prepared` and trained in place.
        prepared: What `method.prepare` returned.
        seed: Decides every draw.
        start: A checkpoint to continue from.
        save: Receives a checkpoint every `save_every` seconds and when training is stopped.
        save_every: Seconds between checkpoints.
        progress: Called with the steps done and the last loss, a few times a second.
        stop: Asked after every step whether to leave early.
        observe: Looked at before training, every `observe_every` steps, and at the end.
        observe_every: 0 looks at nothing.
    """
    device = prepared.graph.device
    method.to(device).train()
    prepared.watching = observe_every > 0
    if not method.steps:
        looks = [{"step": 0, **observe(method, prepared)}] if observe and observe_every else []
        return History(observations=looks, finished=True)
    optimiser = method.optimiser()
    generator = draws(seed, device)
    history = History() if start is None else _restore(start, method, prepared, optimiser, generator)
    done = len(history.losses)
    recorded = torch.full((method.steps,), math.nan, device=device)
    recorded[:done] = torch.tensor(history.losses, device=device)
    saved = looked = time.monotonic()
    if observe and observe_every and not done:
        history.observations.append({"step": 0, **observe(method, prepared)})

    take_step = Step(method, prepared, optimiser, generator)
    while done < method.steps:
        loss = take_step(done)
        if loss is None:
            break
        method.after_step(done)
        recorded[done] = loss
        done += 1

        now = time.monotonic()
        stopping = stop is not None and stop()
        due = save is not None and (now - saved > save_every or stopping)
        # Looking at losses waits for an accelerator, so it is done a few times a second.
        look = now - looked > LOOK_EVERY or done == method.steps
        if device.type == "cpu" or due or look:
            _require_finite(recorded, done, method)
        if look:
            if progress:
                progress(done, float(recorded[done - 1]))
            looked = time.monotonic()
        if observe and observe_every and (done % observe_every == 0 or done == method.steps):
            history.observations.append({"step": done, **observe(method, prepared)})
        if save and due and done < method.steps:
            history.losses = recorded[:done].tolist()
            save(_checkpoint(method, prepared, optimiser, generator, history))
            saved = time.monotonic()
        if stopping:
            break

    history.losses = recorded[:done].tolist()
    history.finished = done >= method.steps or not done
    return history


def draws(seed: int, device: torch.device) -> torch.Generator:
    """The generator of a training's draws, apart from the stream that initialised the weights."""
    words = np.random.SeedSequence([seed, 1]).generate_state(1, np.uint32)
    return torch.Generator(device).manual_seed(int(words[0]))


def _require_finite(recorded: Tensor, done: int, method: Method) -> None:
    # On the host, which has to wait anyway: an accelerator would first have to load kernels for it.
    bad = (~recorded[:done].cpu().isfinite()).nonzero()
    if len(bad):
        step = int(bad[0])
        raise InputError(f"the loss became {float(recorded[step])} at step {step + 1}; {_ways(method)}")


def sameness(embeddings: NDArray[np.float32]) -> str | None:
    """What to say where all nodes have one embedding."""
    some, first = embeddings[:: max(1, len(embeddings) // 100)], embeddings[:1]
    # Most differ in the first few: only then is the rest looked at.
    if len(embeddings) < 2 or (some != first).any() or (embeddings != first).any():
        return None
    what = "the same embedding" if first.any() else "an embedding of zeros"
    return f"all nodes have {what}: features and edges do not tell them apart, or training went astray"


def one_column(graph: Graph, settings: Mapping[str, Any]) -> str | None:
    """What to say where rows are divided by their sums and have one number each."""
    if graph.num_features != 1 or not settings.get("normalise_features"):
        return None
    return (
        "the features have one column, of which dividing rows by their sums leaves the sign alone; "
        "set normalise_features=false to keep it"
    )


def slow_steps(method: Method, graph: Graph, device: torch.device) -> str | None:
    """What to say before training where a step goes over so many pairs of nodes that it takes long.

    Of a processor only: products are most of its work there, and an accelerator's memory ends first.
    """
    products = method.products_a_pair * graph.num_nodes**2
    if device.type != "cpu" or products < FEW_PRODUCTS or not method.steps:
        return None
    seconds = products / _product_rate()
    if seconds < LONG_STEP:
        return None
    fewer = f"set {method.fewer_pairs}, or " if method.fewer_pairs else ""
    return (
        f"a step goes over all pairs of {graph.num_nodes:,} nodes, which takes at least {_spoken(seconds)} "
        f"here, and {method.steps} steps {_spoken(method.steps * seconds)}; {fewer}take spgcl, dgi or bgrl, "
        "which go over none"
    )


def _product_rate() -> float:
    """Products of two numbers a second, in a product of matrices on the processor."""
    matrix = torch.ones(1024, 1024)
    best = math.inf
    for _ in range(3):
        started = time.perf_counter()
        torch.mm(matrix, matrix)
        best = min(best, time.perf_counter() - started)
    return 1024**3 / best


def _spoken(seconds: float) -> str:
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} seconds"


def _checkpoint(
    method: Method,
    prepared: Prepared,
    optimiser: Adam,
    generator: torch.Generator,
    history: History,
) -> Checkpoint:
    return Checkpoint(
        step=len(history.losses),
        weights=method.state_dict(),
        optimiser=optimiser.state(),
        generator=generator.get_state(),
        memory=prepared.memory,
        losses=history.losses,
        observations=history.observations,
    )


def _restore(
    start: Checkpoint,
    method: Method,
    prepared: Prepared,
    optimiser: Adam,
    generator: torch.Generator,
) -> History:
    method.load_state_dict(start.weights)
    optimiser.load(start.optimiser)
    generator.set_state(start.generator)
    prepared.memory.update({name: value.to(prepared.graph.device) for name, value in start.memory.items()})
    return History(list(start.losses), list(start.observations), resumed_from=start.step)


def require_finite(embeddings: NDArray[np.float32], method: Method) -> None:
    """Refuse embeddings that nothing can be done with."""
    if not np.isfinite(embeddings).all():
        raise InputError(f"the embeddings are not finite; {_ways(method)}")


def _ways(method: Method) -> str:
    """What may make numbers smaller, of what the method has."""
    if method.steps:
        causes = [f"learning_rate (now {method.learning_rate:g})"]
    else:
        causes = [name for name, found in parameters(type(method)).items() if found.type is float]
    ways = [f"lower {' or '.join(causes)}"] if causes else []
    if method.reads_features:
        ways.append("check the scale of the features")
    return " or ".join(ways) or "check the weights of the edges"
