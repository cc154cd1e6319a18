"""What a method's settings cost in memory: checked before weights are made, explained when it runs out."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from spgcl.engine.device import machine_memory
from spgcl.errors import InputError
from spgcl.methods.method import Method
from spgcl.methods.parameters import Parameter, parameters
from spgcl.methods.ranges import SizesMemory

# Messages of torch if the host has too little memory, or no computer could have enough.
_OUT_OF_MEMORY = ("can't allocate memory", "not enough memory", "Storage size calculation overflowed")


@contextmanager
def explained_memory(method: type[Method], settings: Mapping[str, Any]) -> Iterator[None]:
    """Turn running out of memory into one line that says which setting of the method to lower."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        known = isinstance(error, (MemoryError, torch.OutOfMemoryError))
        if not known and not any(sign in str(error) for sign in _OUT_OF_MEMORY):
            raise
        raise InputError(f"out of memory; {memory_advice(method, settings)}") from None


def memory_advice(method: type[Method], values: Mapping[str, Any]) -> str:
    """Which of a method's settings to lower when memory runs out: those above their defaults, if any are."""
    settings, sizing = _settings(method, values), _sizing(method)
    raised = [parameter.name for parameter in sizing if settings[parameter.name] > parameter.default]
    unlimited = settings.get("pool_size") == 0
    usual = [
        parameter.name
        for parameter in sizing
        if parameter.sizes_memory is not SizesMemory.IF_RAISED
        and not (unlimited and parameter.name == "pool_size")
    ]
    ways = [_lower(raised or usual[:4])]
    if settings.get("batch_norm_rows", "pool") != "pool":
        ways.append("set batch_norm_rows=pool")
    if unlimited:
        ways.append(f"set pool_size={parameters(method)['pool_size'].default}, as 0 is no limit")
    return ", or ".join(ways)


def require_room(
    method: type[Method], num_features: int, *, num_nodes: int, values: Mapping[str, Any]
) -> None:
    """Refuse a width of which a single layer is larger than this machine's memory."""
    settings = _settings(method, values)
    widening = settings.get("widening", 1)
    for parameter in _sizing(method):
        if parameter.sizes_memory is SizesMemory.WEIGHTS:
            width = widening * settings[parameter.name]
            # A layer has outputs for all nodes, and weights for features or for another layer's outputs.
            others = max(num_nodes, num_features, width) if method.inductive else num_nodes
            causes = [parameter.name, "widening"] if widening > 1 else [parameter.name]
            require_bytes(f"a layer of width {width:,}", 4 * width * others, causes)


def require_bytes(what: str, needed: int, causes: Sequence[str]) -> None:
    """Refuse what is larger than this machine's memory, naming the settings to lower."""
    available = machine_memory()
    if needed > available:
        raise InputError(
            f"out of memory: {what} needs {needed:,} bytes, and this machine has {available:,}; "
            f"{_lower(causes)}"
        )


def _settings(method: type[Method], values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: parameter.default for name, parameter in parameters(method).items()} | dict(values)


def _sizing(method: type[Method]) -> list[Parameter]:
    """A method's settings that size memory, those to lower first in front."""
    sizing = [parameter for parameter in parameters(method).values() if parameter.sizes_memory]
    return sorted(sizing, key=lambda parameter: parameter.sizes_memory or 0)


def _lower(names: Sequence[str]) -> str:
    if not names:
        return "take a smaller graph, fewer features or a larger machine"
    *others, last = names
    return f"lower {', '.join(others)} or {last}" if others else f"lower {last}"
