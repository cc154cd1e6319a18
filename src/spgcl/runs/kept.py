"""Graphs and labels that are given in memory, and kept in the run that is trained on them."""

from collections.abc import Mapping
from dataclasses import fields, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from spgcl.datasets import Dataset, load, names
from spgcl.errors import unknown
from spgcl.files import steady
from spgcl.graph import Graph
from spgcl.io.stored import write_stored
from spgcl.runs.options import GraphOptions
from spgcl.runs.sources import KEPT_GRAPH, Loaded, is_dataset, read_source, with_labels

# Options of reading a graph that are given by name in Python.
READING = {field.name for field in fields(GraphOptions)} - {"features"}


def options_of(reading: Mapping[str, Any], features: Any) -> GraphOptions:
    """Options given by name; features in memory are left out."""
    for name in reading:
        if name not in READING:
            raise unknown("option", name, sorted(READING))
    path = Path(features) if isinstance(features, str | PathLike) else None
    return GraphOptions(features=path, **reading)


def in_memory(value: Any) -> bool:
    """Whether a value is neither absent nor the name of a file."""
    return value is not None and not isinstance(value, str | PathLike)


def read_given(
    graph: Any, options: GraphOptions, features: Any, encoding: Mapping[str, Any] | None = None
) -> Graph:
    """The graph of a data set or its name, a path or an object, with features in memory if they are."""
    if isinstance(graph, Dataset):
        graph = graph.graph
    elif isinstance(graph, str) and is_dataset(graph):
        graph = load(graph).graph
    return read_source(graph, options, features if in_memory(features) else None, encoding)


def given_in_memory(graph: Any, options: GraphOptions, features: Any, labels: Any) -> Loaded | None:
    """The graph with its labels if any part is given in memory; None if names and files say it all."""
    if _is_known(graph) and not in_memory(labels):
        return replace(_of_dataset(graph), kept=False)
    if isinstance(graph, str | PathLike) and not in_memory(features) and not in_memory(labels):
        return None
    if isinstance(graph, Dataset):
        loaded = _of_dataset(graph)
    else:
        name = Path(graph).name.split(".")[0] if isinstance(graph, str | PathLike) else "graph"
        loaded = Loaded(name, read_given(graph, options, features), kept=True)
    if labels is None:
        return loaded
    return with_labels(loaded, labels, label_column=options.label, id_column=options.id, if_there=True)


def _is_known(graph: Any) -> bool:
    """Whether a data set is, unchanged, the one that its name stands for."""
    known = isinstance(graph, Dataset) and graph.name in names()
    return known and bool(load(graph.name).graph.digest == graph.graph.digest)


def _of_dataset(dataset: Dataset) -> Loaded:
    return Loaded(
        dataset.name,
        dataset.graph,
        dataset.labels,
        dataset.splits,
        dataset.metric,
        dataset.class_names,
        kept=True,
    )


def keep(folder: Path, loaded: Loaded) -> None:
    """Write a graph that was given in memory, with its labels and splits, into its run."""
    if not loaded.kept:
        return
    more: dict[str, Any] = {"node_labels": loaded.labels, "metric": loaded.metric}
    if loaded.class_names:
        more["class_names"] = np.array(loaded.class_names, dtype=str)
    if (splits := loaded.published) is not None:
        more |= {"train_masks": splits.train, "val_masks": splits.validation, "test_masks": splits.test}
    with steady(folder, change=True):
        write_stored(folder / KEPT_GRAPH, loaded.graph, **more)
