"""Scores of embeddings and statistics of graphs; besides these, theory and supervised methods use labels."""

import importlib
from typing import Any

# Each is loaded on first use. No module has the name of an export, as its import would replace the function.
_EXPORTS = {
    "Scores": "scores",
    "SplitScore": "scores",
    "class_mixing": "statistics",
    "cluster": "clustering",
    "describe": "statistics",
    "edge_homophily": "statistics",
    "hold_out_edges": "links",
    "knn": "neighbours",
    "link_scores": "links",
    "majority_class": "majority",
    "most_similar": "neighbours",
    "node_homophily": "statistics",
    "predict_first_split": "linear_probe",
    "probe": "linear_probe",
    "score_predictions": "predictions",
    "split_half": "reliability",
    "transformed_homophily": "transformed",
    "tuned_probe": "tuned",
}

__all__ = sorted(_EXPORTS)


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'spgcl.evaluation' has no attribute {name!r}")
    return getattr(importlib.import_module(f"spgcl.evaluation.{_EXPORTS[name]}"), name)


def __dir__() -> list[str]:
    return __all__
