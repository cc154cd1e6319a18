"""Node embeddings without labels, in one forward pass, for homophilic and heterophilic graphs."""

import importlib
from typing import Any

__version__ = "0.1.0"

# Loaded on first use: `import spgcl` and `spgcl --help` stay quick.
_EXPORTS = {
    "Dataset": "spgcl.datasets",
    "Embedder": "spgcl.estimator",
    "Graph": "spgcl.graph",
    "InputError": "spgcl.errors",
    "METHODS": "spgcl.methods",
    "load": "spgcl.datasets",
    "probe": "spgcl.evaluation",
}

__all__ = [*sorted(_EXPORTS), "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'spgcl' has no attribute {name!r}")
    return getattr(importlib.import_module(_EXPORTS[name]), name)


def __dir__() -> list[str]:
    return __all__
