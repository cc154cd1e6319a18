"""Hyper-parameters read from a method's signature: names, defaults, choices, ranges, and text into values."""

import inspect
import math
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from spgcl.errors import InputError, unknown
from spgcl.methods.method import Method

# Names that mean the same in every method have the same range everywhere; the rest is checked by the method.
POSITIVE = {
    *("hidden", "layers", "embedding_width", "predictor_width", "projection", "projection_width"),
    *("widening", "seeds", "positives", "negatives", "neighbours", "clusters", "clusterings"),
    *("steps", "learning_rate", "temperature"),
}
SHARE = {
    *("dropout", "rate", "cut_off", "decay", "warm_up", "drop_edges", "mask_features"),
    *(f"{what}_{view}" for what in ("drop_edges", "mask_features") for view in ("1", "2", "first", "second")),
}


@dataclass(frozen=True)
class Parameter:
    """One hyper-parameter: its default, its type, and its choices where there are only some."""

    name: str
    default: Any
    type: type
    choices: tuple[str, ...] = ()


def parameters(method: type[Method]) -> Mapping[str, Parameter]:
    """The keyword-only arguments of a method's constructor."""
    hints = typing.get_type_hints(method.__init__)
    found: dict[str, Parameter] = {}
    for name, argument in inspect.signature(method).parameters.items():
        if argument.kind is inspect.Parameter.KEYWORD_ONLY:
            hint = hints[name]
            choices = typing.get_args(hint) if typing.get_origin(hint) is Literal else ()
            found[name] = Parameter(name, argument.default, str if choices else hint, choices)
    return types.MappingProxyType(found)


def meanings(method: type[Method]) -> dict[str, str]:
    """What a method's own text says of its hyper-parameters."""
    _, _, listed = (inspect.getdoc(method) or "").partition("Args:\n")
    found: dict[str, str] = {}
    for line in inspect.cleandoc(listed).splitlines():
        if line.startswith(" "):
            found[next(reversed(found))] += f" {line.strip()}"
        else:
            name, _, text = line.partition(": ")
            found[name] = text
    return {name: found[name] for name in parameters(method)}


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
    if not math.isfinite(number) or number < 0 or (parameter.name in POSITIVE and number == 0):
        bound = "above 0" if parameter.name in POSITIVE else "0 or more"
        finite = "" if math.isfinite(number) else " and finite"
        raise InputError(f"{parameter.name} is {value}; it must be {bound}{finite}")
    if parameter.name in SHARE and number >= 1:
        raise InputError(f"{parameter.name} is {value}; it must be at least 0 and below 1")
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
            # 2.5 steps are refused, 1e3 given as a float is not.
            if not isinstance(value, bool) and (kind is not int or isinstance(value, str) or number == value):
                return number
    raise InputError(f"{parameter.name} is {value!r}; it must be {_TYPE_NAMES[kind]}")


_TYPE_NAMES = {bool: "true or false", int: "a whole number", float: "a number"}
