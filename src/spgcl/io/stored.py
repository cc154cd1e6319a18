"""Labels and masks in the file of a graph, which a `Graph` never holds; and graphs written as such a file."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spgcl.errors import InputError
from spgcl.files import replacing
from spgcl.graph import Graph
from spgcl.io.draft import is_integer
from spgcl.io.labels import known_classes, number_classes
from spgcl.io.objects import as_matrix
from spgcl.io.opening import opening, suffix_of

_PARTS = ("train", "val", "test")


def write_stored(path: Path, graph: Graph, **more: Any) -> None:
    """Write a graph, as it is, into one `.npz`: arrays and text only, see `spgcl.io.saved.read_archive`.

    Args:
        path: The file.
        graph: The graph; read it again with its own direction.
        more: What `read_stored_labels` reads: `node_labels`, `class_names`, `train_masks` ..., `metric`.
    """
    sources = np.repeat(np.arange(graph.num_nodes), graph.degrees)
    parts: dict[str, Any] = {"edges": np.column_stack([sources, graph.columns])}
    if sparse.issparse(graph.features):
        for name in ("data", "indices", "indptr", "shape"):
            parts[f"node_features_{name}"] = getattr(graph.features, name)
    else:
        parts["node_features"] = graph.features
    ids = graph.node_ids
    parts["node_ids"] = ids if is_integer(ids) else np.array(ids.tolist(), dtype=str)
    if graph.weights is not None:
        parts["edge_weights"] = graph.weights
    parts |= {"feature_names": np.array(graph.feature_names, dtype=str), "directed": graph.directed}
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez(file, **parts, **{name: value for name, value in more.items() if value is not None})


@dataclass(frozen=True, eq=False)
class StoredLabels:
    """Labels and splits in the file of a graph.

    Attributes:
        labels: One class per node, -1 for none.
        class_names: Names of the classes.
        masks: Train, validation and test nodes, each of shape (splits, nodes), or None if none are stored.
        field: Name of the labels in the file.
        metric: What to score by, if the file says so.
    """

    labels: NDArray[np.int64]
    class_names: tuple[str, ...]
    masks: tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]] | None
    field: str
    metric: str = "accuracy"


def read_stored_labels(path: Path, graph: Graph) -> StoredLabels | None:
    """Labels of a saved `Data` (`y`) or archive (`node_labels`) in the order of `graph`; None without any.

    Raises:
        InputError: There is such a field, but it does not hold one class per node of this graph.
    """
    field = "node_labels" if suffix_of(path) == ".npz" else "y"
    stored, masks, kept = _read_archive(path) if suffix_of(path) == ".npz" else (*_read_data(path), {})
    if stored is None:
        return None
    values = np.asarray(as_matrix(stored))
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise InputError(f"{field} of shape {values.shape} is not one class per node")
    ids, num_nodes = graph.node_ids, len(values)
    if kept.get("in_order"):
        ids = np.arange(graph.num_nodes)
    if not is_integer(ids) or ids.min() < 0 or ids.max() >= num_nodes:
        raise InputError(f"{num_nodes} entries of {field} do not match the nodes of this graph")
    classes, known = known_classes(values, origin=field)
    labels, names = number_classes(classes[ids], known[ids], origin=field)
    if kept.get("class_names"):
        names = tuple(kept["class_names"][int(name)] for name in names)
    metric = kept.get("metric", "accuracy")
    if masks is None:
        return StoredLabels(labels, names, None, field, metric)
    for mask in masks:
        if mask.ndim != 2 or mask.shape[1] != num_nodes:
            raise InputError(f"a mask of shape {mask.shape} does not fit {num_nodes} nodes")
    train, validation, test = (mask.astype(np.bool_)[:, ids] for mask in masks)
    return StoredLabels(labels, names, (train, validation, test), field, metric)


def _read_archive(path: Path) -> tuple[Any, list[NDArray[Any]] | None, dict[str, Any]]:
    """Labels and masks of an `.npz`, None if there are none; and what `write_stored` says of them."""
    masks = [f"{part}_masks" for part in _PARTS]
    names = ("node_labels", *masks, "class_names", "metric")
    with opening(path, "NumPy archive"), path.open("rb") as file, np.load(file, allow_pickle=False) as held:
        found = {name: held[name] for name in names if name in held.files}
        kept: dict[str, Any] = {
            name: found[name].tolist() for name in ("class_names", "metric") if name in found
        }
        # Labels are in the order of rows, whatever the ids.
        kept["in_order"] = "node_ids" in held.files
    complete = set(masks) <= set(found)
    masks_found = [np.atleast_2d(found[name]) for name in masks] if complete else None
    return found.get("node_labels"), masks_found, kept


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
