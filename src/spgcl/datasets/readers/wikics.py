"""WikiCS: one JSON file with twenty splits."""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from spgcl.datasets.dataset import Splits
from spgcl.datasets.readers.contents import Contents, compact
from spgcl.graph import Graph
from spgcl.io.opening import opening


def read_wikics(paths: Mapping[str, Path], *, directed: bool = False) -> Contents:
    """Read features, labels, link lists and masks; the one test mask serves every split."""
    path = paths["articles"]
    with opening(path, "JSON file of WikiCS"):
        record = json.loads(path.read_text(encoding="utf-8"))
        links = [np.asarray(row, dtype=np.int64) for row in record["links"]]
        train = np.array(record["train_masks"], dtype=np.bool_)
        # Like PyTorch Geometric, this uses `val_masks` and not the additional masks for early stopping.
        validation = np.array(record["val_masks"], dtype=np.bool_)
        test = np.tile(np.array(record["test_mask"], dtype=np.bool_), (len(train), 1))
        features = compact(np.array(record["features"], dtype=np.float32))
        labels = np.array(record["labels"], dtype=np.int64)
    sources = np.repeat(np.arange(len(links)), [len(row) for row in links])
    return Contents(
        graph=Graph.from_edges(sources, np.concatenate(links), features, directed=directed),
        labels=labels,
        splits=Splits(train, validation, test, source="published"),
    )
