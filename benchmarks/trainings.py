"""Trainings of methods on data sets, as the scripts that score them run them."""

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from spgcl import Dataset
from spgcl.methods import Supervision, find
from spgcl.training.fitting import fit


def embeddings_of(
    dataset: Dataset, method: str, settings: dict[str, Any], seed: int, device: torch.device
) -> NDArray[np.float32]:
    """Train once; embeddings of all nodes, or the class scores of a supervised method."""
    supervision = Supervision.of(dataset.labels, dataset.splits) if find(method).supervised else None
    fitted = fit(method, dataset.graph, settings=settings, seed=seed, device=device, supervision=supervision)
    return fitted.embed()


def argument_parser(description: str | None) -> argparse.ArgumentParser:
    """A parser of graphs and methods; see `asked_pairs`."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "datasets",
        nargs="+",
        metavar="GRAPH",
        help="GRAPH for every --method, or METHOD:GRAPH for one",
    )
    parser.add_argument("--method", action="append", help="repeat for several (default: spgcl)")
    return parser


def graphs_parser(description: str | None, results: Path) -> argparse.ArgumentParser:
    """A parser of graphs and of the file that their lines go to."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("datasets", nargs="+", metavar="GRAPH")
    parser.add_argument("--results", type=Path, default=results)
    return parser


def asked_pairs(words: Iterable[str], methods: Sequence[str] | None) -> list[tuple[str, str]]:
    """Method and graph of every word; a word that names no method stands for all of them."""
    pairs = []
    for word in words:
        method, _, graph = word.rpartition(":")
        pairs += [(name, graph) for name in ([method] if method else methods or ["spgcl"])]
    return pairs
