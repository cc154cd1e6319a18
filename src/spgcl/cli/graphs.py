"""From GRAPH and the graph options to a graph, and labels and splits where there are any."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spgcl.cli.options import GraphOptions
from spgcl.cli.output import note
from spgcl.errors import InputError
from spgcl.graph import Graph

if TYPE_CHECKING:
    from spgcl.datasets import Dataset, Splits

_SPLIT_SEED = 0


@dataclass(frozen=True, eq=False)
class Loaded:
    """What GRAPH and the graph options stand for.

    Attributes:
        name: The data set's name, or the file's without its suffixes.
        graph: The graph.
        labels: One class a node, or None.
        published: The data set's own splits, or None.
        metric: "accuracy" or "roc_auc".
        class_names: Names of the classes, where they are known.
        path: The file that GRAPH is, or None for a data set.
    """

    name: str
    graph: Graph
    labels: NDArray[np.int64] | None
    published: "Splits | None"
    metric: str
    class_names: tuple[str, ...]
    path: Path | None

    @property
    def source(self) -> str:
        """What names this graph from any folder: the data set's name, or the file's absolute path."""
        return self.name if self.path is None else str(self.path.absolute())

    @property
    def preset_name(self) -> str:
        """What presets know this graph by; a user's file is none of theirs, whatever it is called."""
        return self.name if self.path is None else str(self.path)

    @cached_property
    def splits(self) -> "Splits | None":
        """The data set's splits, or seeded ones over the user's labels, which a note then says."""
        if self.labels is None or self.published is not None:
            return self.published
        from spgcl.datasets import random_splits

        try:
            splits = random_splits(self.labels, seed=_SPLIT_SEED, stratified=True)
        except InputError as error:
            raise InputError(
                f"{len(self.labels)} labelled nodes are too few for 10/10/80 splits: {error}"
            ) from None
        note(f"the labels come without splits: {len(splits)} {splits.source} splits are used")
        return splits


def resolve(graph: str, options: GraphOptions | None = None, labels: Path | None = None) -> Loaded:
    """The graph of a data set's name or of a path (it contains "/" or has a suffix)."""
    options = options or GraphOptions()
    if "/" not in graph and not Path(graph).suffix:
        return _with_labels(_from_dataset(graph, options), labels, options)
    from spgcl.io import read_graph

    path = Path(graph)
    read = read_graph(
        path,
        options.features,
        structural=options.structural,
        directed=options.directed,
        source_column=options.source,
        target_column=options.target,
        weight_column=options.weight,
        id_column=options.id,
        feature_attributes=options.attributes.split(",") if options.attributes else None,
    )
    name = path.name.split(".")[0] or path.name
    return _with_labels(Loaded(name, read, None, None, "accuracy", (), path), labels, options)


def _from_dataset(name: str, options: GraphOptions) -> Loaded:
    from spgcl.datasets import load, names

    if name not in names() and Path(name).exists():
        raise InputError(f"{name!r} is no data set; if you mean the file, write ./{name}")
    dataset: Dataset = load(name)
    for option in options.given():
        if option != "id":
            raise InputError(
                f"{name} is a data set and brings its own graph; --{option} goes with a file only"
            )
    return Loaded(
        name, dataset.graph, dataset.labels, dataset.splits, dataset.metric, dataset.class_names, None
    )


def _with_labels(loaded: Loaded, labels: Path | None, options: GraphOptions) -> Loaded:
    if labels is None:
        return loaded
    from spgcl.io import read_labels

    values, class_names = read_labels(labels, loaded.graph, id_column=options.id)
    return Loaded(loaded.name, loaded.graph, values, None, "accuracy", class_names, loaded.path)
