"""Reads the graph that a command or a record names, with its labels and splits if there are any."""

import gc
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from os import PathLike
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from spgcl.datasets import Splits, load, names, random_splits
from spgcl.errors import InputError, note
from spgcl.graph import Graph
from spgcl.graph.structural import with_structural
from spgcl.io import read_graph, read_labels
from spgcl.io.features import TABLES
from spgcl.io.opening import suffix_of
from spgcl.io.read import SAVED_DATA
from spgcl.io.stored import read_stored_labels
from spgcl.runs.options import GraphOptions
from spgcl.scale.store import Store, is_store, open_store

# Where a run keeps a graph that was given in memory.
KEPT_GRAPH = "graph.npz"
# Edges kept from training, and as many pairs that are no edges.
HeldOut = tuple[NDArray[np.int64], NDArray[np.int64]]

_SPLIT_SEED = 0
# Classes that a note names at most.
_LISTED = 5


@dataclass(frozen=True, eq=False)
class Loaded:
    """A graph as named on the command line, with its labels.

    Attributes:
        name: The data set's name, or the file's without its suffixes.
        labels: One class per node, -1 for unlabelled nodes; None if there are no labels.
        published: Splits of the data set or of the file, or None.
        class_names: Names of the classes, if they are known.
        path: The graph's file, or None for a data set.
        kept: Whether the graph was given in memory, so that a run has to keep it.
        noted: Notes that were given before: those of a store by `ingest`.
    """

    name: str
    graph: Graph
    labels: NDArray[np.int64] | None = None
    published: Splits | None = None
    metric: str = "accuracy"
    class_names: tuple[str, ...] = ()
    path: Path | None = None
    kept: bool = False
    noted: tuple[str, ...] = ()

    @property
    def source(self) -> str:
        """Names this graph: the data set's name, the file's absolute path, or the file in a run's folder."""
        if self.kept:
            return KEPT_GRAPH
        return self.name if self.path is None else str(self.path.absolute())

    @property
    def remarks(self) -> list[str]:
        """What reading the graph changed, to be noted."""
        return [remark for remark in self.graph.notes if remark not in self.noted]

    @cached_property
    def splits(self) -> Splits | None:
        """Splits that came with the labels, else seeded ones, which are noted when they are made."""
        if self.labels is None or self.published is not None:
            return self.published
        splits = random_splits(self.labels, seed=_SPLIT_SEED, stratified=True)
        note(f"the labels come without splits: {len(splits)} {splits.source} splits are used")
        note(_never_trained_on(self.labels, splits, self.class_names))
        return splits


def _never_trained_on(labels: NDArray[np.int64], splits: Splits, names: tuple[str, ...]) -> str | None:
    """A note on classes too small to have a training node in any split."""
    missing = np.setdiff1d(labels[labels >= 0], labels[splits.train.any(axis=0)])
    if not len(missing):
        return None
    named = ", ".join(repr(names[value]) if names else str(value) for value in missing[:_LISTED].tolist())
    rest = f" and {len(missing) - _LISTED} more" if len(missing) > _LISTED else ""
    count = np.count_nonzero(np.isin(labels, missing))
    return f"classes in no training part: {named}{rest}; their nodes ({count}) always count as wrong"


def resolve(
    graph: str, options: GraphOptions | None = None, labels: Any = None, *, on_disk: bool = False
) -> Loaded:
    """The graph of a data set's name or of a path, with the labels given or else its own.

    A store larger than memory is refused, unless it may stay `on_disk`.
    """
    options = options or GraphOptions()
    loaded = resolve_graph(graph, options, on_disk=on_disk)
    if labels is not None:
        # If the features are a table, `id` may name a column of that table only.
        optional = options.features is not None and suffix_of(options.features) in TABLES
        return with_labels(
            loaded, labels, label_column=options.label, id_column=options.id, if_there=optional
        )
    if options.label is not None:
        raise InputError(f"--label {options.label} names a column of labels; give their file (--labels FILE)")
    return loaded if loaded.path is None else _with_stored_labels(loaded, loaded.path)


def is_dataset(graph: str) -> bool:
    """Whether GRAPH is a data set's name; a path contains "/" or has a suffix."""
    return "/" not in graph and not Path(graph).suffix


def resolve_graph(
    graph: str,
    options: GraphOptions,
    encoding: Mapping[str, Any] | None = None,
    *,
    on_disk: bool = False,
) -> Loaded:
    """The graph of a data set's name or of a path; a file is not searched for labels."""
    _keep_imports()
    if is_dataset(graph):
        return _from_dataset(graph, options)
    path = Path(graph)
    name = path.name.split(".")[0] or path.name
    if is_store(path):
        stored = _of_store(path, options, on_disk=on_disk)
        return Loaded(name, stored, path=path, noted=stored.notes)
    if options.memory:
        raise InputError(f"--memory {options.memory} goes with a store; {path} is read into memory as it is")
    return Loaded(name, read_source(path, options, encoding=encoding), path=path)


def read_source(
    source: Any,
    options: GraphOptions,
    features: Any = None,
    encoding: Mapping[str, Any] | None = None,
) -> Graph:
    """The graph of a file or an object, see `spgcl.io.read_graph`, perhaps with features in memory."""
    return read_graph(
        source,
        options.features if features is None else features,
        structural=options.structural,
        directed=options.directed,
        source_column=options.source,
        target_column=options.target,
        weight_column=options.weight,
        bipartite=options.bipartite,
        id_column=options.id,
        feature_attributes=options.attributes.split(",") if options.attributes else None,
        feature_columns=options.columns.split(",") if options.columns else None,
        encoding=encoding,
    )


def _of_store(path: Path, options: GraphOptions, *, on_disk: bool) -> Graph:
    """The graph of a store, in memory if it fits."""
    store, limit = opened(path, options), memory_of(options)
    if store.in_memory_bytes() <= limit:
        return store.load()
    if not on_disk:
        raise InputError(
            f"{path} needs about {store.in_memory_bytes() / 2**30:.2f} GiB in memory, above "
            f"{limit / 2**30:.2f} GiB; raise --memory (spgcl fit and spgcl inspect also work on disk)"
        )
    # A store has the attributes of a graph that are read next.
    return cast(Graph, store)


def require_loadable(graph: Graph) -> None:
    """Refuse a page of a graph on disk that half of the machine's memory cannot hold."""
    limit = memory_of(GraphOptions())
    if isinstance(graph, Store) and (needed := graph.in_memory_bytes()) > limit:
        raise InputError(
            f"a page of {graph.folder} needs about {needed / 2**30:.1f} GiB of memory, above half of this "
            f"machine's, {limit / 2**30:.1f} GiB; make it on a larger machine"
        )


def opened(path: Path, options: GraphOptions) -> Store:
    """The store of a folder; options for reading files do not apply to it."""
    # The column of ids may be that of a file of labels; direction and weights are those of the store.
    if unused := [option for option in options.given() if option not in ("id", "label", "memory")]:
        raise InputError(f"{path} is a store and was read already; --{unused[0]} goes with spgcl ingest")
    return open_store(path)


def memory_of(options: GraphOptions) -> int:
    """The bytes that --memory allows, half of the machine's by default."""
    if options.memory is None:
        # Needs torch, which reading a graph does not.
        from spgcl.engine.device import machine_memory

        return machine_memory() // 2
    found = re.fullmatch(r"(\d+(?:\.\d+)?) *([KMGT]?)i?B?", options.memory.strip(), re.IGNORECASE)
    if found is None:
        raise InputError(f"--memory {options.memory!r} is no size; write it as 2GiB or 500MiB")
    return int(float(found[1]) * 1024 ** " KMGT".index(found[2].upper() or " "))


@cache
def _keep_imports() -> None:
    """Exempt the objects of imported modules from garbage collection: with PyTorch's, one takes 0.1 s."""
    gc.freeze()


def resolve_recorded(
    folder: Path,
    graph: dict[str, Any],
    labels: Any = None,
    *,
    label: str | None = None,
    id_column: str | None = None,
) -> Loaded:
    """The graph of a run's record, with the labels given or else those of the record.

    Args:
        folder: The run's folder, which may hold the graph.
        graph: The record.
        labels: See `spgcl.io.read_labels`.
        label: Column of classes in the labels, else that of the record.
        id_column: Column of node ids in the labels, else that of the record.
    """
    name = source_of(folder, graph)
    options = GraphOptions.recorded(graph["options"])
    if graph["source"] == KEPT_GRAPH:
        # It holds its structural features.
        options = replace(options, structural=None)
    if label is None and id_column is None:
        return resolve(name, options, graph["labels"] if labels is None else labels, on_disk=True)
    labels = graph["labels"] if labels is None else labels
    if labels is None:
        raise InputError("--label and --id name columns of labels; give their file (--labels FILE)")
    loaded = resolve_graph(name, replace(options, label=None), on_disk=True)
    return with_labels(loaded, labels, label_column=label or options.label, id_column=id_column or options.id)


def source_of(folder: Path, graph: dict[str, Any]) -> str:
    """The data set or file that a run's record names; a file in the run's folder is named relative to it."""
    source = str(graph["source"])
    return source if is_dataset(source) else str(folder / source)


def _from_dataset(name: str, options: GraphOptions) -> Loaded:
    if name not in names() and Path(name).exists():
        raise InputError(f"{name!r} is no data set; if you mean the file, write ./{name}")
    dataset = load(name)
    # Columns of ids and classes may be those of a file of labels.
    if unused := [option for option in options.given() if option not in ("id", "label")]:
        raise InputError(f"{name} brings its own graph; --{unused[0]} goes with a file only")
    return Loaded(name, dataset.graph, dataset.labels, dataset.splits, dataset.metric, dataset.class_names)


def with_labels(
    loaded: Loaded,
    labels: Any,
    *,
    label_column: str | None,
    id_column: str | None,
    if_there: bool = False,
) -> Loaded:
    """The same graph with labels from a file or in memory, and without splits; see `spgcl.io.read_labels`."""
    values, class_names = read_labels(
        labels, loaded.graph, id_column=id_column, label_column=label_column, if_there=if_there
    )
    origin = labels if isinstance(labels, str | PathLike) else "the labels"
    _note_unlabelled(values, class_names, origin)
    return replace(loaded, labels=values, published=None, class_names=class_names, metric="accuracy")


def _with_stored_labels(loaded: Loaded, path: Path) -> Loaded:
    """Labels and masks of a saved graph are used as a data set's are, with a note."""
    if suffix_of(path) not in (*SAVED_DATA, ".npz"):
        return loaded
    try:
        stored = read_stored_labels(path, loaded.graph)
        splits = Splits(*stored.masks, source="stored") if stored and stored.masks else None
    except InputError as error:
        note(f"the labels in {path} are not used: {error}; --labels FILE gives others")
        return loaded
    if stored is None:
        return loaded
    with_splits = " and masks" if splits else ""
    if path.name != KEPT_GRAPH:
        note(
            f"{stored.field} of {path} read as labels{with_splits} for evaluation; --labels FILE gives others"
        )
    _note_unlabelled(stored.labels, stored.class_names, path)
    names = stored.class_names
    return replace(loaded, labels=stored.labels, published=splits, class_names=names, metric=stored.metric)


def _note_unlabelled(
    labels: NDArray[np.int64], class_names: tuple[str, ...], path: str | PathLike[str]
) -> None:
    count = np.count_nonzero(labels < 0)
    if count:
        note(f"{path}: {count:,} of {len(labels):,} nodes have no label and are not scored")
    if "-1" in class_names:
        note(f"{path}: -1 is taken as a class; leave the cell empty for a node without a label")


def training_graph(
    graph: Graph, options: Mapping[str, Any], fraction: float, seed: int
) -> tuple[Graph, HeldOut | None]:
    """The graph that a run is trained on, and the edges held out from it with as many non-edges.

    Structural features are computed again without the held-out edges, which they would reveal.
    """
    if not fraction:
        return graph, None
    # Needs torch, which reading a graph does not.
    from spgcl.evaluation.links import hold_out_edges

    rest, positive, negative = hold_out_edges(graph, fraction, seed)
    structural = options.get("structural")
    return with_structural(rest, structural) if structural else rest, (positive, negative)
