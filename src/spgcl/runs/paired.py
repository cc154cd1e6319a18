"""Runs on the same task against each other: which one validation chooses, and differences split by split."""

from collections.abc import Mapping
from typing import Any

import numpy as np

Record = Mapping[str, Any]


def task_of(record: Record) -> tuple[str, ...]:
    """What two evaluations need in common to be compared: graph, labels and splits, metric, probe."""
    protocol = record["protocol"] if record["protocol"] != "predictions" else "paper"
    return record["dataset"], record["metric"], protocol, record.get("task", "")


def validation_of(record: Record) -> float:
    """The mean validation score of an evaluation."""
    return float(np.mean([score["validation"] for score in record["splits"]]))


def chosen(records: Mapping[str, Record]) -> str:
    """The run with the best mean validation score; of equal ones the first. No test score is read."""
    return max(records, key=lambda name: validation_of(records[name]))


def differences(records: Mapping[str, Record], reference: str) -> dict[str, dict[str, float | int]]:
    """Test scores of every run minus those of the reference, on the same splits and restarts.

    Mean, deviation and standard error over splits, and on how many splits the run is above and below.
    """
    base = np.array([score["test"] for score in records[reference]["splits"]])
    found = {}
    for name, record in records.items():
        tests = np.array([score["test"] for score in record["splits"]])
        if name == reference or len(tests) != len(base):
            continue
        gaps = tests - base
        found[name] = {
            "mean": float(gaps.mean()),
            "std": float(gaps.std()),
            "above": int((gaps > 0).sum()),
            "below": int((gaps < 0).sum()),
            "pairs": len(gaps),
        }
    return found
