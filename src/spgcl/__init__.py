"""Node embeddings without labels, in one forward pass, for homophilic and heterophilic graphs."""

import importlib
from typing import Any

__version__ = "0.1.0"

# Loaded on first use: `import spgcl` and `spgcl --help` stay quick.
_EXPORTS = {
    "Dataset": "spgcl.datasets",
    "Embedder": "spgcl.face.estimator",
    "Graph": "spgcl.graph",
    "InputError": "spgcl.errors",
    "METHODS": "spgcl.methods",
    "compare": "spgcl.face.compare",
    "fit": "spgcl.face.fit",
    "inspect": "spgcl.face.inspect",
    "load": "spgcl.datasets",
    "open": "spgcl.face.run",
    "probe": "spgcl.evaluation",
}
# A function that is called otherwise where it is defined, as its name is one of Python's own.
_RENAMED = {"open": "open_run"}

# Without `open`: a star import must not replace Python's own.
__all__ = [*sorted(_EXPORTS.keys() - _RENAMED.keys()), "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'spgcl' has no attribute {name!r}")
    return getattr(importlib.import_module(_EXPORTS[name]), _RENAMED.get(name, name))


def __dir__() -> list[str]:
    return __all__
