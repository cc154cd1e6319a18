"""What a method's settings cost in memory: said before weights are made, or when there was too little."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from spgcl.engine.device import machine_memory
from spgcl.errors import InputError
from spgcl.methods.method import Method
from spgcl.methods.parameters import parameters
from spgcl.methods.ranges import SizesMemory

# Weights below this are made without a look ahead.
_SMALL_BYTES = 2**30
# What torch says when the host has too little memory, or no computer could have enough.
_OUT_OF_MEMORY = ("can't allocate memory", "not enough memory", "Storage size calculation overflowed")


@contextmanager
def explained_memory(method: type[Method], settings: Mapping[str, Any]) -> Iterator[None]:
    """Turn running out of memory into one line that says which setting of the method to lower."""
    way_out = memory_advice(method, settings)
    try:
        yield
    except (MemoryError, torch.OutOfMemoryError):
        raise InputError(f"out of memory; {way_out}") from None
    except RuntimeError as error:
        if not any(sign in str(error) for sign in _OUT_OF_MEMORY):
            raise
        raise InputError(f"out of memory; {way_out}") from None


def memory_advice(method: type[Method], values: Mapping[str, Any]) -> str:
    """Which of a method's settings to lower when memory runs out: those above their defaults, if any are."""
    known = parameters(method)
    settings = {name: parameter.default for name, parameter in known.items()} | dict(values)
    sizing = _sizing(method, SizesMemory.WEIGHTS, SizesMemory.STEP, SizesMemory.IF_RAISED)
    raised = [name for name in sizing if settings[name] > known[name].default]
    unlimited = settings.get("pool_size") == 0
    usual = _sizing(method, SizesMemory.WEIGHTS, SizesMemory.STEP)
    ways = [_lower(raised or [name for name in usual if not (unlimited and name == "pool_size")][:4])]
    if settings.get("batch_norm_rows", "pool") != "pool":
        ways.append("set batch_norm_rows=pool")
    if unlimited:
        ways.append(f"set pool_size={known['pool_size'].default}, as 0 is no limit")
    return ", or ".join(ways)


def _sizing(method: type[Method], *kinds: SizesMemory) -> list[str]:
    """Names of a method's settings that size memory in one of these ways, the first way first."""
    known = parameters(method).values()
    return [parameter.name for kind in kinds for parameter in known if parameter.sizes_memory is kind]


def _lower(names: list[str]) -> str:
    if not names:
        return "take a smaller graph, fewer features or a larger machine"
    return f"lower {', '.join(names[:-1])} or {names[-1]}" if len(names) > 1 else f"lower {names[0]}"


def require_room(
    method: type[Method],
    num_features: int,
    *,
    num_nodes: int,
    task: tuple[int, int] | None,
    values: Mapping[str, Any],
) -> None:
    """Refuse, before any are made, weights or embeddings that alone are larger than this machine's memory.

    Args:
        method: Whose weights.
        num_features: Width of the graph's features.
        num_nodes: For methods with weights a node.
        task: Models and classes, for supervised methods.
        values: Checked hyper-parameters.
    """
    settings = {name: known.default for name, known in parameters(method).items()} | dict(values)
    widening = settings.get("widening", 1)
    widths = _sizing(method, SizesMemory.WEIGHTS)
    widest = widening * max((settings[name] for name in widths), default=0)
    # Shapes without storage are exact but cost a second at first use: only where much may be asked for.
    if 4 * widest * max(widest, num_features, num_nodes) < _SMALL_BYTES:
        return
    needed = _weight_bytes(method, num_features, num_nodes, task, values)
    causes = [*widths, "widening"] if widening > 1 else widths
    require_bytes(method, "the weights alone", needed, causes=causes)
    if not method.supervised:
        width = settings.get("embedding_width") or settings.get("hidden") or 0
        require_bytes(method, "the embeddings alone", 4 * num_nodes * width)


def require_bytes(
    method: type[Method], what: str, needed: int | None, *, causes: Sequence[str] | None = None
) -> None:
    """Refuse what is larger than this machine's memory.

    Args:
        method: Whose settings to lower.
        what: The thing, in words.
        needed: Its bytes; None for more than can be counted.
        causes: Settings that its size follows; the widths of weights when None.
    """
    available = _memory_bytes()
    if needed is None or needed > available:
        amount = "more bytes than can be counted" if needed is None else f"{needed:,} bytes"
        ways = _lower(_sizing(method, SizesMemory.WEIGHTS) if causes is None else list(causes))
        raise InputError(f"out of memory: {what} take {amount}, and this machine has {available:,}; {ways}")


def _weight_bytes(
    method: type[Method],
    num_features: int,
    num_nodes: int,
    task: tuple[int, int] | None,
    values: Mapping[str, Any],
) -> int | None:
    """Bytes of a method's weights; None where their number overflows."""
    try:
        with torch.device("meta"):
            made = method(num_features, *(task or ()) if method.supervised else (), **values)
            made.allocate(num_nodes)
    except RuntimeError as error:
        if "overflow" not in str(error):
            raise
        return None
    return sum(weight.numel() * weight.element_size() for weight in made.parameters())


def _memory_bytes() -> int:
    return machine_memory()
