"""Pickles of arrays and plain containers, opened without running any code in them."""

import collections
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from spgcl.errors import InputError
from spgcl.io.opening import opening


def _dtype(name: str, *_: object) -> np.dtype[Any]:
    # Old pickles also pass `align` and `copy` as numbers: they have no effect, and new NumPy warns about
    # them.
    return np.dtype(name)


# Functions named in NumPy's own pickles, obtained from NumPy because their module moved between versions.
_RECONSTRUCT: Any = np.empty(0).__reduce__()[0]
_SCALAR: Any = np.float64(0).__reduce__()[0]

_ADMITTED: dict[tuple[str, str], Callable[..., Any]] = {
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): _dtype,
    ("collections", "defaultdict"): collections.defaultdict,
    **{(core + ".multiarray", "_reconstruct"): _RECONSTRUCT for core in ("numpy.core", "numpy._core")},
    **{(core + ".multiarray", "scalar"): _SCALAR for core in ("numpy.core", "numpy._core")},
    **{(module, kind.__name__): kind for module in ("__builtin__", "builtins") for kind in (list, int)},
    **{
        (f"scipy.sparse.{private}{layout}", f"{layout}_matrix"): getattr(sparse, f"{layout}_matrix")
        for layout in ("csr", "csc", "coo")
        for private in ("", "_")
    },
}


class _ArrayUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """The admitted callable of exactly this name; nothing is imported."""
        if (module, name) not in _ADMITTED:
            raise InputError(
                f"the pickle asks for {module}.{name}; only arrays and plain containers are admitted"
            )
        return _ADMITTED[module, name]


def load_pickle(path: Path) -> Any:
    """The arrays and containers in a pickle file (text of Python 2 pickles is read as latin-1)."""
    with opening(path, "pickle of arrays"), path.open("rb") as stream:
        return _ArrayUnpickler(stream, encoding="latin1").load()


def load_pickled_array(path: Path) -> Any:
    """The object array in an .npy file, whose body is a pickle."""
    with opening(path, "NumPy array file"), path.open("rb") as stream:
        major, _ = np.lib.format.read_magic(stream)
        formats = np.lib.format
        read_header = formats.read_array_header_1_0 if major == 1 else formats.read_array_header_2_0
        _, _, dtype = read_header(stream)
        if not dtype.hasobject:
            raise InputError(f"expected a pickled array of records, found {dtype}")
        return _ArrayUnpickler(stream, encoding="latin1").load()
