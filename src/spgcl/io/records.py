"""Records on disk are input: every part is checked against annotations before it is used."""

import json
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from spgcl.errors import InputError
from spgcl.io.opening import read_text

_LARGEST = 2**64


def read_record(path: Path, annotation: Any, remedy: str) -> Any:
    """A JSON file whose parts are as annotated; otherwise one line that names the part and the remedy."""
    try:
        record = json.loads(read_text(path))
    except (FileNotFoundError, InputError):
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read as a run record ({error}); {remedy}") from None
    require_part(path, record, annotation, remedy)
    return record


def require_part(path: Path, record: Any, annotation: Any, remedy: str) -> None:
    """Refuse a record read from a file that is not as annotated."""
    try:
        require(record, annotation)
    except InputError as error:
        raise InputError(f"{path}: {error}; {remedy}") from None


def require(value: Any, annotation: Any, part: str = "") -> None:
    """Refuse a value that is not as annotated; the error names the part of the record.

    Records that are dataclasses know all their parts, and those without a default have to be there; a
    `TypedDict` lists some of several parts. `Annotated` adds descriptions; None among them says that the
    value may be empty.

    >>> require({"step": ["x"]}, dict[str, list[int]])
    Traceback (most recent call last):
    spgcl.errors.InputError: step.0 is 'x', not int
    """
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation is Any:
        return
    if origin is Annotated:
        described = [more for more in arguments[1:] if more is not None and not isinstance(more, str)]
        for one in [arguments[0], *(described if value or None not in arguments else ())]:
            require(value, one, part)
    elif origin in (Union, UnionType):
        _require_one_of(value, arguments, part)
    elif origin is Literal:
        _require(any(type(value) is type(one) and value == one for one in arguments), value, annotation, part)
    elif origin in (list, dict):
        _require(isinstance(value, origin), value, origin.__name__, part)
        inside = value.items() if origin is dict else enumerate(value)
        for key, entry in inside:
            require(entry, arguments[-1], f"{part}.{key}" if part else str(key))
    elif is_typeddict(annotation) or is_dataclass(annotation):
        _require_parts(value, annotation, part)
    else:
        _require(_is_plain(value, annotation), value, getattr(annotation, "__name__", str(annotation)), part)


def _require_one_of(value: Any, choices: tuple[Any, ...], part: str) -> None:
    for choice in choices:
        try:
            require(value, choice, part)
            return
        except InputError:
            continue
    _require(False, value, " or ".join(getattr(one, "__name__", str(one)) for one in choices), part)


def _require_parts(value: Any, annotation: Any, part: str) -> None:
    _require(isinstance(value, dict), value, "a record", part)
    hints = get_type_hints(annotation, include_extras=True)
    if is_dataclass(annotation):
        needed = {
            one.name
            for one in fields(annotation)
            if one.default is MISSING and one.default_factory is MISSING
        }
        unknown = [name for name in value if name not in hints]
        if unknown:
            raise InputError(f"{_under(part, unknown[0])} is not a known part")
    else:
        needed = annotation.__required_keys__
    for name, hint in hints.items():
        if name in value:
            require(
                value[name],
                get_args(hint)[0] if get_origin(hint) is NotRequired else hint,
                _under(part, name),
            )
        elif name in needed:
            raise InputError(f"{_under(part, name)} is missing")


def _is_plain(value: Any, kind: type) -> bool:
    if kind in (NoneType, None):
        return value is None
    if kind is float:
        return type(value) is float or _is_plain(value, int)
    if kind is int:
        return type(value) is int and abs(value) < _LARGEST
    return type(value) is (str if kind is Path else kind)


def _under(part: str, name: object) -> str:
    return f"{part}.{name}" if part else str(name)


def _require(valid: bool, value: Any, wanted: Any, part: str) -> None:
    if not valid:
        shown = repr(value)
        shown = shown if len(shown) <= 60 else f"{shown[:60]}..."
        raise InputError(f"{part or 'the record'} is {shown}, not {wanted}".replace("typing.", ""))
