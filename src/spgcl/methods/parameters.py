"""Hyper-parameters read from a method's signature: names, defaults, choices, ranges, and text into values."""

import inspect
import math
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from spgcl.errors import InputError, unknown
from spgcl.methods.method import Method
from spgcl.methods.ranges import NOT_NEGATIVE, Range, SizesMemory


@dataclass(frozen=True)
class Parameter:
    """One hyper-parameter, as in its method's signature.

    Attributes:
        choices: All values that it allows, if they are names.
        range: Numbers that it allows.
        sizes_memory: What grows with it, if anything does.
    """

    name: str
    default: Any
    type: type
    choices: tuple[str, ...] = ()
    range: Range = NOT_NEGATIVE
    sizes_memory: SizesMemory | None = None


def parameters(method: type[Method]) -> Mapping[str, Parameter]:
    """The keyword-only arguments of a method's constructor, and those that it passes on by `**`."""
    return types.MappingProxyType(_parameters(method))


def _parameters(owner: Any) -> dict[str, Parameter]:
    hints = typing.get_type_hints(owner.__init__, include_extras=True)
    arguments = inspect.signature(owner.__init__).parameters.values()
    own = {
        argument.name: _parameter(argument.name, argument.default, hints[argument.name])
        for argument in arguments
        if argument.kind is inspect.Parameter.KEYWORD_ONLY
    }
    if all(argument.kind is not inspect.Parameter.VAR_KEYWORD for argument in arguments):
        return own
    inherited = _parameters(owner.__base__)
    # New ones first; where a default alone is another, the order stays.
    return {name: own[name] for name in own if name not in inherited} | inherited | own


def _parameter(name: str, default: Any, hint: Any) -> Parameter:
    if typing.get_origin(hint) is Literal:
        return Parameter(name, default, str, typing.get_args(hint))
    kind, *notes = typing.get_args(hint) if typing.get_origin(hint) is Annotated else (hint,)
    allowed = next((note for note in notes if isinstance(note, Range)), NOT_NEGATIVE)
    sized = next((note for note in notes if isinstance(note, SizesMemory)), None)
    return Parameter(name, default, kind, range=allowed, sizes_memory=sized)


def meanings(method: type[Method]) -> dict[str, str]:
    """Meaning of every hyper-parameter: from the method's docstring, else from that of a class it extends."""
    found: dict[str, str] = {}
    for owner in reversed(method.__mro__):
        if issubclass(owner, Method):
            found |= _documented(owner)
    return {name: found[name] for name in parameters(method)}


def _documented(owner: type) -> dict[str, str]:
    _, _, listed = inspect.cleandoc(owner.__doc__ or "").partition("Args:\n")
    found: dict[str, str] = {}
    for line in inspect.cleandoc(listed).splitlines():
        if line.startswith(" "):
            found[next(reversed(found))] += f" {line.strip()}"
        else:
            name, _, text = line.partition(": ")
            found[name] = text
    return found


def checked(method: type[Method], values: Mapping[str, Any]) -> dict[str, Any]:
    """Given values, text or not, as values of the right type and range; unknown names are refused."""
    known = parameters(method)
    for name in values:
        if not known:
            raise InputError(f"unknown parameter {name!r}; this method has none")
        if name not in known:
            raise unknown("parameter", name, known)
    return {name: _checked_value(known[name], value) for name, value in values.items()}


def _checked_value(parameter: Parameter, value: Any) -> Any:
    if parameter.choices:
        if value not in parameter.choices:
            raise unknown(f"value of {parameter.name}", str(value), parameter.choices)
        return value
    number = _of_type(parameter, value)
    if parameter.type is bool:
        return number
    if not parameter.range.holds(number):
        unbounded = not math.isfinite(number) and parameter.range.most == math.inf
        finite = " and finite" if unbounded else ""
        raise InputError(f"{parameter.name} is {value}; it must be {parameter.range}{finite}")
    return number


def _of_type(parameter: Parameter, value: Any) -> Any:
    kind = parameter.type
    if kind is bool:
        if isinstance(value, bool):
            return value
        if str(value).lower() in ("true", "yes", "1", "false", "no", "0"):
            return str(value).lower() in ("true", "yes", "1")
    else:
        try:
            number = kind(value)
        except (TypeError, ValueError, OverflowError):
            pass
        else:
            if kind is int and abs(number) >= 2**63:
                raise InputError(f"{parameter.name} is {str(value)[:30]}...; it must be below 2**63")
            # 2.5 steps are refused, 1e3 given as a float is not.
            if not isinstance(value, bool) and (kind is not int or isinstance(value, str) or number == value):
                return number
    raise InputError(f"{parameter.name} is {value!r}; it must be {_TYPE_NAMES[kind]}")


_TYPE_NAMES = {bool: "true or false", int: "a whole number", float: "a number"}
