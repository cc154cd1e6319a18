"""Pickles of arrays and plain containers, read by an interpreter of our own that runs nothing in them.

Of pickle's opcodes it knows those that push values, fill containers and build arrays. A few names are
admitted, each with exactly the arguments that NumPy and SciPy write. Arrays are made here, from bytes whose
number is checked, so a file can neither call anything nor describe memory that it does not hold.
"""

import collections
import io
import math
import pickletools
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from spgcl.errors import InputError
from spgcl.io.opening import opening

_MODULES = ("numpy.core.multiarray", "numpy._core.multiarray")
_ADMITTED: dict[tuple[str, str], str] = {
    ("numpy", "ndarray"): "ndarray",
    ("numpy", "dtype"): "dtype",
    ("collections", "defaultdict"): "defaultdict",
    **{(module, name): name for module in _MODULES for name in ("_reconstruct", "scalar")},
    **{(module, "list"): "list" for module in ("__builtin__", "builtins")},
    **{(f"scipy.sparse.{module}", "csr_matrix"): "csr_matrix" for module in ("csr", "_csr")},
}
_TYPE = re.compile(r"[biuf][1248]|O8?")
# Arrays may share their bytes or entries, but together take at most so many times the size of the file.
_MOST_COPIES = 16


@dataclass(frozen=True)
class _Name:
    """A class or function that is admitted, by name only."""

    text: str


@dataclass(eq=False)
class _Unbuilt:
    """An array, a type or a matrix before its state; afterwards it is replaced wherever it was memorised."""

    kind: str
    text: str = ""
    keys: list[int] = field(default_factory=list)


def load_pickle(path: Path) -> Any:
    """The arrays and containers in a pickle file (text of Python 2 pickles is read as latin-1)."""
    with opening(path, "pickle of arrays"):
        return _Interpreter(path.read_bytes()).run()


def load_pickled_array(path: Path) -> Any:
    """The object array in an .npy file, whose body is a pickle."""
    with opening(path, "NumPy array file"):
        stream = io.BytesIO(path.read_bytes())
        major, _ = np.lib.format.read_magic(stream)
        formats = np.lib.format
        read_header = formats.read_array_header_1_0 if major == 1 else formats.read_array_header_2_0
        _, _, dtype = read_header(stream)
        if not dtype.hasobject:
            raise InputError(f"expected a pickled array of records, found {dtype}")
        return _Interpreter(stream.read()).run()


class _Interpreter:
    """The stack machine of pickle, without its means to import, call or set attributes."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._room = _MOST_COPIES * len(content)
        self._stack: list[Any] = []
        self._marks: list[int] = []
        self._memo: dict[int, Any] = {}

    def run(self) -> Any:
        """The one value that the pickle leaves on the stack."""
        for opcode, argument, _ in pickletools.genops(self._content):
            operation = _OPERATIONS.get(opcode.name)
            if operation is None:
                raise InputError(f"the pickle uses {opcode.name}, which arrays and plain containers do not")
            operation(self, argument)
        return self._stack.pop()

    def push(self, value: Any) -> None:
        self._stack.append(value)

    def mark(self, _: Any) -> None:
        self._marks.append(len(self._stack))

    def popped(self) -> list[Any]:
        """The values above the last mark, taken off the stack."""
        start = self._marks.pop()
        values = self._stack[start:]
        del self._stack[start:]
        return values

    def push_tuple(self, count: int) -> None:
        values = [self._stack.pop() for _ in range(count)]
        self.push(tuple(reversed(values)))

    def append(self, values: list[Any]) -> None:
        _require(type(self._stack[-1]) is list, "entries of a list")
        self._stack[-1].extend(values)

    def set_items(self, pairs: list[Any]) -> None:
        # Text and numbers only: hashing deeply nested tuples overflows the stack of the process.
        target, keys = self._stack[-1], pairs[::2]
        plain = all(type(key) in (str, int, float) for key in keys)
        _require(isinstance(target, dict) and plain, "keys of a dictionary")
        target.update(zip(keys, pairs[1::2], strict=True))

    def memorise(self, key: int | None) -> None:
        key = len(self._memo) if key is None else key
        self._memo[key] = value = self._stack[-1]
        if isinstance(value, _Unbuilt):
            value.keys.append(key)

    def name(self, text: str) -> None:
        module, _, name = text.partition(" ")
        if (module, name) not in _ADMITTED:
            raise InputError(
                f"the pickle asks for {module}.{name}; only arrays and plain containers are admitted"
            )
        self.push(_Name(_ADMITTED[module, name]))

    def stack_name(self, _: Any) -> None:
        name, module = self._stack.pop(), self._stack.pop()
        self.name(f"{module} {name}")

    def call(self, _: Any) -> None:
        """REDUCE and NEWOBJ: begin an array, a type or a matrix; make a number or a dictionary of lists."""
        arguments, function = self._stack.pop(), self._stack.pop()
        match function, arguments:
            case _Name("_reconstruct"), (_Name("ndarray"), (0,), b"b" | "b"):
                self.push(_Unbuilt("array"))
            case _Name("dtype"), (str(text), 0 | 1, 0 | 1) if _TYPE.fullmatch(text):
                self.push(_Unbuilt("dtype", text))
            case _Name("csr_matrix"), ():
                self.push(_Unbuilt("matrix"))
            case _Name("scalar"), (np.dtype() as dtype, data):
                self.push(self._array((), dtype, data, "C")[()])
            case _Name("defaultdict"), (_Name("list"),):
                self.push(collections.defaultdict(list))
            case _:
                _require(False, "a call")

    def build(self, _: Any) -> None:
        """BUILD: finish what `call` began."""
        state, unbuilt = self._stack.pop(), self._stack.pop()
        _require(isinstance(unbuilt, _Unbuilt), "an object with a state")
        match unbuilt.kind, state:
            case "dtype", (3 | 4, "<" | ">" | "|" | "=" as order, None, None, None, *_):
                built: Any = np.dtype(order + unbuilt.text)
            case "array", (1, tuple(shape), np.dtype() as dtype, bool(fortran), data):
                built = self._array(shape, dtype, data, "F" if fortran else "C")
            case "matrix", {"_shape": (int(), int()) as shape, "data": data, "indices": at, "indptr": rows}:
                built = self._matrix(shape, data, at, rows)
            case _:
                _require(False, "a state")
        self._memo.update(dict.fromkeys(unbuilt.keys, built))
        self.push(built)

    def _array(self, shape: tuple[Any, ...], dtype: np.dtype[Any], data: Any, order: Any) -> Any:
        _require(all(type(length) is int and length >= 0 for length in shape), "a shape")
        size = math.prod(shape)
        self._spend(size * dtype.itemsize)
        if dtype.hasobject:
            _require(type(data) is list and len(data) == size, "the entries of an array")
            flat = np.empty(size, dtype=object)
            flat[:] = data
            return flat.reshape(shape, order=order)
        content = data.encode("latin1") if isinstance(data, str) else data
        _require(type(content) is bytes and len(content) == size * dtype.itemsize, "the bytes of an array")
        return np.ndarray(shape, dtype, bytearray(content), order=order)

    def _matrix(self, shape: Any, data: Any, indices: Any, rows: Any) -> Any:
        kinds = zip((data, indices, rows), ("biuf", "iu", "iu"), strict=True)
        flat = all(isinstance(part, np.ndarray) and part.dtype.kind in kind for part, kind in kinds)
        _require(flat, "the parts of a matrix")
        self._spend(data.nbytes + indices.nbytes + rows.nbytes)
        matrix = sparse.csr_matrix((data, indices, rows), shape=shape)
        # The constructor does not look at every index.
        matrix.check_format(full_check=True)
        return matrix

    def _spend(self, count: int) -> None:
        self._room -= count
        _require(self._room >= 0, "arrays of this size")


def _require(valid: bool, what: str) -> None:
    if not valid:
        raise InputError(f"the pickle has {what} that NumPy and SciPy do not write")


_Operation = Callable[[_Interpreter, Any], None]
# Opcodes by the names of `pickletools`; those with a value carry it as their argument.
_NUMBERS = ("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT")
_TEXTS = ("BINSTRING", "SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES", "BINUNICODE", "SHORT_BINUNICODE")
_OPERATIONS: dict[str, _Operation] = {
    **dict.fromkeys(("PROTO", "FRAME", "STOP"), lambda *_: None),
    **dict.fromkeys((*_NUMBERS, *_TEXTS), _Interpreter.push),
    "NONE": lambda machine, _: machine.push(None),
    "NEWTRUE": lambda machine, _: machine.push(True),
    "NEWFALSE": lambda machine, _: machine.push(False),
    "EMPTY_TUPLE": lambda machine, _: machine.push(()),
    "EMPTY_LIST": lambda machine, _: machine.push([]),
    "EMPTY_DICT": lambda machine, _: machine.push({}),
    "MARK": _Interpreter.mark,
    "TUPLE": lambda machine, _: machine.push(tuple(machine.popped())),
    "TUPLE1": lambda machine, _: machine.push_tuple(1),
    "TUPLE2": lambda machine, _: machine.push_tuple(2),
    "TUPLE3": lambda machine, _: machine.push_tuple(3),
    "APPEND": lambda machine, _: machine.append([machine._stack.pop()]),
    "APPENDS": lambda machine, _: machine.append(machine.popped()),
    "SETITEM": lambda machine, _: machine.set_items([machine._stack.pop(-2), machine._stack.pop()]),
    "SETITEMS": lambda machine, _: machine.set_items(machine.popped()),
    **dict.fromkeys(("BINPUT", "LONG_BINPUT", "MEMOIZE"), _Interpreter.memorise),
    **dict.fromkeys(("BINGET", "LONG_BINGET"), lambda machine, key: machine.push(machine._memo[key])),
    "GLOBAL": _Interpreter.name,
    "STACK_GLOBAL": _Interpreter.stack_name,
    **dict.fromkeys(("REDUCE", "NEWOBJ"), _Interpreter.call),
    "BUILD": _Interpreter.build,
}
