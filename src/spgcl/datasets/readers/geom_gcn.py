"""The geom-gcn text files of Chameleon, Squirrel and Actor ("film"), which have edge directions."""

import gzip
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spgcl.datasets.dataset import Splits
from spgcl.datasets.readers.contents import Contents, indicators, published_splits, read_arrays
from spgcl.errors import InputError
from spgcl.graph import Graph

Columns = Callable[[str], NDArray[np.int64]]


def read_geom_gcn(paths: Mapping[str, Path], *, directed: bool = False) -> Contents:
    """Read edges, features with labels, and every split file given (roles `split_0`, `split_1` ...)."""
    edges = np.loadtxt(_lines(paths["edges"]), dtype=np.int64, skiprows=1, ndmin=2)
    features, labels = _read_nodes(paths["nodes"])
    splits = [paths[role] for role in sorted(paths) if role.startswith("split_")]
    return Contents(
        graph=Graph.from_edges(edges[:, 0], edges[:, 1], features, directed=directed),
        labels=labels,
        splits=_read_splits(splits) if splits else None,
    )


def _lines(path: Path) -> list[str]:
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return content.decode("utf-8").splitlines()


def _read_nodes(path: Path) -> tuple[sparse.csr_array, NDArray[np.int64]]:
    header, *lines = _lines(path)
    # Actor lists non-zero columns, and the highest one in the header; the others write every 0 and 1.
    amount = re.search(r"feature_amount:(\d+)", header)
    columns_of = _listed_columns if amount else _written_columns
    rows = {node: (columns, label) for node, columns, label in _parsed(lines, columns_of, path)}
    if sorted(rows) != list(range(len(rows))):
        raise InputError(f"{path}: node ids are not 0 to {len(rows) - 1}, each once")
    # The amount is the highest index, counted from 0.
    width = int(amount[1]) + 1 if amount else lines[0].count(",") + 1
    labels = np.array([rows[node][1] for node in range(len(rows))], dtype=np.int64)
    return indicators([rows[node][0] for node in range(len(rows))], width), labels


def _listed_columns(text: str) -> NDArray[np.int64]:
    return np.array([int(column) for column in text.split(",") if column], dtype=np.int64)


def _written_columns(text: str) -> NDArray[np.int64]:
    characters = np.frombuffer(text.encode(), dtype=np.uint8)
    digits, commas = characters[::2] - ord("0"), characters[1::2]
    if digits.max(initial=0) > 1 or (commas != ord(",")).any():
        raise ValueError("features are not 0 and 1")
    return np.flatnonzero(digits)


def _parsed(
    lines: list[str], columns_of: Columns, path: Path
) -> Iterator[tuple[int, NDArray[np.int64], int]]:
    for number, line in enumerate(lines, start=2):
        try:
            node, values, label = line.split("\t")
            yield int(node), columns_of(values), int(label)
        except ValueError:
            raise InputError(
                f"{path}, line {number}: expected node, features and label, tab-separated"
            ) from None


def _read_splits(paths: list[Path]) -> Splits:
    names = ("train_mask", "val_mask", "test_mask")
    files = [read_arrays(path, names) for path in paths]
    return published_splits([np.array([file[name] for file in files]) for name in names])
