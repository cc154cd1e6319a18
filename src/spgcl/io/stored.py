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
    field = "node_labels" if suffix_of(path) == ".npz" else "y"
    stored, masks = _read_archive(path) if suffix_of(path) == ".npz" else _read_data(path)
    if stored is None:
        return None
    values = np.asarray(as_matrix(stored))
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise InputError(f"{field} of shape {values.shape} is not one class per node")
    ids, num_nodes = graph.node_ids, len(values)
    if not is_integer(ids) or ids.min() < 0 or ids.max() >= num_nodes:
        raise InputError(f"{num_nodes} entries of {field} do not match the nodes of this graph")
    classes, known = known_classes(values, origin=field)
    labels, names = number_classes(classes[ids], known[ids], origin=field)
    if masks is None:
        return StoredLabels(labels, names, None, field)
    for mask in masks:
        if mask.ndim != 2 or mask.shape[1] != num_nodes:
            raise InputError(f"a mask of shape {mask.shape} does not fit {num_nodes} nodes")
    train, validation, test = (mask.astype(np.bool_)[:, ids] for mask in masks)
    return StoredLabels(labels, names, (train, validation, test), field)


def _read_archive(path: Path) -> tuple[Any, list[NDArray[Any]] | None]:
    """Labels and masks of an `.npz`, None if there are none."""
    masks = [f"{part}_masks" for part in _PARTS]
    with opening(path, "NumPy archive"), path.open("rb") as file, np.load(file, allow_pickle=False) as held:
        found = {name: held[name] for name in ("node_labels", *masks) if name in held.files}
    complete = set(masks) <= set(found)
    return found.get("node_labels"), [np.atleast_2d(found[name]) for name in masks] if complete else None


def _read_data(path: Path) -> tuple[Any, list[NDArray[Any]] | None]:
    """Labels and masks of a saved `Data`, None if there are none."""
    from spgcl.io.saved import load_saved

    loaded = load_saved(path)
    held = loaded if isinstance(loaded, Mapping) else loaded.to_dict()
    masks = [held.get(f"{part}_mask") for part in _PARTS]
    if any(mask is None for mask in masks):
        return held.get("y"), None
    # PyTorch Geometric has one column per split.
    return held.get("y"), [np.atleast_2d(np.asarray(as_matrix(mask)).T) for mask in masks]
