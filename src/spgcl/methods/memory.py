"""What a method's settings cost in memory: said before weights are made, or when there was too little."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from spgcl.errors import InputError
from spgcl.methods.method import Method
from spgcl.methods.parameters import parameters

# Settings that widths of weights follow, then those that only what is computed with them follows.
WIDTHS = ("hidden", "embedding_width", "predictor_width", "projection", "projection_width")
SIZES = ("pool_size", "seeds", "negatives", "walks", "walk_length", "window", "clusters", "hops")
# What is named first where it was raised.
RAISED = (*WIDTHS, *SIZES, "widening", "layers", "neighbours", "clusterings", "negative_ratio", "positives")
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
    raised = [name for name in RAISED if name in known and settings[name] > known[name].default]
    unlimited = settings.get("pool_size") == 0
    usual = [name for name in (*WIDTHS, *SIZES) if name in known and not (unlimited and name == "pool_size")]
    ways = [_lower(raised or usual[:4])]
    if settings.get("batch_norm_rows", "pool") != "pool":
        ways.append("set batch_norm_rows=pool")
    if unlimited:
        ways.append(f"set pool_size={known['pool_size'].default}, as 0 is no limit")
    return ", or ".join(ways)


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
    widest = widening * max((settings.get(name) or 0 for name in WIDTHS), default=0)
    # Shapes without storage are exact but cost a second at first use: only where much may be asked for.
    if 4 * widest * max(widest, num_features, num_nodes) < _SMALL_BYTES:
        return
    needed = _weight_bytes(method, num_features, num_nodes, task, values)
    causes = (*WIDTHS, "widening") if widening > 1 else WIDTHS
    require_bytes(method, "the weights alone", needed, causes=causes)
    if not method.supervised:
        width = settings.get("embedding_width") or settings.get("hidden") or 0
        require_bytes(method, "the embeddings alone", 4 * num_nodes * width)


def require_bytes(
    method: type[Method], what: str, needed: int | None, *, causes: tuple[str, ...] = WIDTHS
) -> None:
    """Refuse what is larger than this machine's memory.

    Args:
        method: Whose settings to lower.
        what: The thing, in words.
        needed: Its bytes; None for more than can be counted.
        causes: Settings that its size follows.
    """
    available = _memory_bytes()
    if needed is None or needed > available:
        amount = "more bytes than can be counted" if needed is None else f"{needed:,} bytes"
        ways = _lower([name for name in causes if name in parameters(method)])
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
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
