"""Labels and masks in the file of a graph; a `Graph` never holds them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spgcl.errors import InputError
from spgcl.graph import Graph
from spgcl.io.draft import is_integer
from spgcl.io.labels import known_classes, number_classes
from spgcl.io.objects import as_matrix
from spgcl.io.opening import opening, suffix_of

_PARTS = ("train", "val", "test")


@dataclass(frozen=True, eq=False)
class StoredLabels:
    """Labels and splits in the file of a graph.

    Attributes:
        labels: One class per node, -1 for none.
        class_names: Names of the classes.
        masks: Train, validation and test nodes, each of shape (splits, nodes), or None if none are stored.
        field: Name of the labels in the file.
    """

    labels: NDArray[np.int64]
    class_names: tuple[str, ...]
    masks: tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]] | None
    field: str


def read_stored_labels(path: Path, graph: Graph) -> StoredLabels | None:
    """Labels of a saved `Data` (`y`) or archive (`node_labels`) in the order of `graph`; None without any.

    Raises:
        InputError: There is such a field, but it does not hold one class per node of this graph.
    """
    field, found = _fields(path)
    if field not in found:
        return None
    values = np.asarray(as_matrix(found[field]))
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise InputError(f"{field} of shape {values.shape} is not one class per node")
    ids = graph.node_ids
    if not is_integer(ids) or ids.min() < 0 or ids.max() >= len(values):
        raise InputError(f"{len(values)} entries of {field} do not match the nodes of this graph")
    labels, names = number_classes(*(part[ids] for part in known_classes(values, origin=field)), origin=field)
    return StoredLabels(labels, names, _masks(found, ids, len(values)), field)


def _fields(path: Path) -> tuple[str, dict[str, Any]]:
    """The name of the labels in a file, and the stored labels and masks."""
    if suffix_of(path) != ".npz":
        from spgcl.io.saved import load_saved

        loaded = load_saved(path)
        held = loaded if isinstance(loaded, Mapping) else loaded.to_dict()
        names = ("y", *(f"{part}_mask" for part in _PARTS))
        return "y", {name: held[name] for name in names if held.get(name) is not None}
    names = ("node_labels", *(f"{part}_masks" for part in _PARTS))
    with opening(path, "NumPy archive"), path.open("rb") as file, np.load(file, allow_pickle=False) as held:
        return "node_labels", {name: held[name] for name in names if name in held.files}


def _masks(
    found: Mapping[str, Any], ids: NDArray[Any], num_nodes: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]] | None:
    parts = []
    for part in _PARTS:
        if f"{part}_masks" in found:
            mask = np.atleast_2d(np.asarray(found[f"{part}_masks"]))
        elif f"{part}_mask" in found:
            # PyTorch Geometric has one column per split.
            mask = np.atleast_2d(np.asarray(as_matrix(found[f"{part}_mask"])).T)
        else:
            return None
        if mask.ndim != 2 or mask.shape[1] != num_nodes:
            raise InputError(f"the {part} masks do not have one entry for each of {num_nodes} nodes")
        parts.append(mask.astype(np.bool_)[:, ids])
    return parts[0], parts[1], parts[2]
