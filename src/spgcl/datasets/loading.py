"""From a name to a data set."""

from dataclasses import replace

from spgcl.datasets.dataset import Dataset, random_splits
from spgcl.datasets.entries import Entry, entries, entry
from spgcl.datasets.readers import READERS, Contents
from spgcl.datasets.storage import checked_paths
from spgcl.datasets.synthetic import BUILT_IN, contextual_block_model
from spgcl.errors import InputError, unknown


def names() -> list[str]:
    """Every name that `load` knows: the built-in graphs, then the benchmarks."""
    return [*BUILT_IN, *entries()]


def load(name: str) -> Dataset:
    """The data set of that name: generated, or read from files in the data folder after a checksum."""
    if name in BUILT_IN:
        return contextual_block_model(name=name, **BUILT_IN[name])
    if name not in entries():
        raise unknown("data set", name, names())
    found = entry(name)
    return _dataset(found, READERS[found.reader](checked_paths(found, found.files)))


def load_directed(name: str) -> Dataset:
    """The same data set with the publisher's edge directions, if a file has them."""
    found = entry(name)
    if found.directed_reader is None:
        raise InputError(f"{name} is published without edge direction; load it undirected")
    contents = READERS[found.directed_reader](
        checked_paths(found, found.directed or found.files), directed=True
    )
    return _dataset(found, contents)


def _dataset(found: Entry, contents: Contents) -> Dataset:
    splits = contents.splits
    if splits is None:
        splits = random_splits(contents.labels, seed=found.split_seed or 0)
    # For benchmarks, notes about dropped edges are no news: `datasets stats` explains the differences.
    graph = replace(contents.graph, notes=())
    return Dataset(found.name, graph, contents.labels, splits, found.metric)
