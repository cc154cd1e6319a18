"""The two Twitch graphs: MUSAE's country graphs (csv and json) and Twitch-gamers (csv)."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spgcl.datasets.readers.contents import Contents, indicators, read_index_splits
from spgcl.errors import InputError
from spgcl.graph import Graph
from spgcl.io.arrow import from_arrow
from spgcl.io.opening import opening


def read_musae(paths: Mapping[str, Path], *, directed: bool = False) -> Contents:
    """Read a country graph: the label is `mature`, rows are in order of `new_id`."""
    targets = _read_table(paths["targets"])
    order = _order(targets["new_id"], paths["targets"])
    edges = _read_table(paths["edges"])
    labels = (targets["mature"] == "True").astype(np.int64)[order]
    return Contents(
        graph=Graph.from_edges(
            edges["from"], edges["to"], _words(paths["features"], len(order)), directed=directed
        ),
        labels=labels,
        splits=read_index_splits(paths["splits"], len(order)),
    )


def read_twitch_gamers(paths: Mapping[str, Path], *, directed: bool = False) -> Contents:
    """Read Twitch-gamers with LINKX's seven features: dates as numbers, languages as codes, standardised."""
    nodes = _read_table(paths["features"])
    order = _order(nodes["numeric_id"], paths["features"])
    edges = _read_table(paths["edges"])
    sources, targets = edges["numeric_id_1"], edges["numeric_id_2"]
    return Contents(
        graph=Graph.from_edges(sources, targets, _profiles(nodes)[order], directed=directed),
        labels=nodes["mature"].astype(np.int64)[order],
        splits=read_index_splits(paths["splits"], len(order)),
    )


def _read_table(path: Path) -> dict[str, NDArray[Any]]:
    from pyarrow import csv, string

    # Dates and truth values stay text: they are converted below.
    text = dict.fromkeys(("created_at", "updated_at", "language", "mature"), string())
    with opening(path, "csv"):
        table = csv.read_csv(path, convert_options=csv.ConvertOptions(column_types=text))
    return {name: from_arrow(table[name]) for name in table.column_names}


def _order(ids: NDArray[Any], path: Path) -> NDArray[np.int64]:
    order = np.argsort(ids, kind="stable")
    if not np.array_equal(ids[order], np.arange(len(ids))):
        raise InputError(f"{path}: node ids are not 0 to {len(ids) - 1}, each once")
    return order


def _words(path: Path, num_nodes: int) -> sparse.csr_array:
    """0/1 features from lists of indices, without the columns that no node of this country uses."""
    lists = json.loads(path.read_text(encoding="utf-8"))
    rows = [np.asarray(lists.get(str(node), []), dtype=np.int64) for node in range(num_nodes)]
    used, renumbered = np.unique(np.concatenate(rows), return_inverse=True)
    return indicators(np.split(renumbered, np.cumsum([len(row) for row in rows])[:-1]), len(used))


def _profiles(nodes: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
    """Feature columns in file order without the id and the label, each with mean 0 and deviation 1."""
    columns = []
    for name, values in nodes.items():
        if name in ("numeric_id", "mature"):
            continue
        if name in ("created_at", "updated_at"):
            values = np.char.replace(values.astype(str), "-", "")
        elif name == "language":
            # LINKX numbers languages by first appearance instead of giving each a column: hence 7 features.
            codes: dict[str, int] = {}
            values = np.array([codes.setdefault(language, len(codes)) for language in values])
        columns.append(values.astype(np.float64))
    matrix = np.stack(columns, axis=1)
    deviations = matrix.std(axis=0, ddof=1)
    standard: NDArray[np.float64] = (matrix - matrix.mean(axis=0)) / np.where(deviations > 0, deviations, 1)
    return standard.astype(np.float32)
