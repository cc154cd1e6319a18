"""How far links follow the classes: in the graph, and among the nodes that are most similar."""

import numpy as np
from numpy.typing import NDArray

from spgcl.evaluation.statistics import class_mixing, edge_homophily
from spgcl.evaluation.transformed import transformed_homophily
from spgcl.report.charts import Item, matrix, section, strip, strips, table, text
from spgcl.report.material import Material

# A larger matrix is read by nobody.
_MOST_CLASSES = 40


def homophily(material: Material) -> Item:
    """The original graph against the transformed one, overall and class by class."""
    if material.labels is None:
        words = "Homophily needs labels; give them by --labels FILE."
        return section("homophily", "Homophily", [text(words)])
    labels, graph, names = material.labels, material.graph, material.names
    positives = min(int(material.run.settings.get("positives", 5)), material.nearest[0].shape[1])
    original = class_mixing(graph, labels)
    similar = similar_mixing(material.nearest[0][:, :positives], labels[material.shown], len(names))
    before = transformed_homophily(graph, labels, positives=positives).homophily
    after = _overall(material.nearest[0][:, :positives], labels[material.shown])
    rows = [
        _row("original graph", edge_homophily(graph, labels)),
        _row("most similar by smoothed features", before),
        _row("most similar by embedding", after, role="own"),
    ]
    items = [strips("Links between nodes of one class", rows, "percent of links", (0, 100))]
    if len(names) <= _MOST_CLASSES:
        items.append(matrix("Original graph", names, original, "from", "to"))
        items.append(matrix("Transformed graph (most similar by embedding)", names, similar, "from", "to"))
    diagonals = np.stack([np.diag(original), np.diag(similar)], axis=1)
    cells = [
        [name, *[f"{100 * share:.1f}" for share in pair]] for name, pair in zip(names, diagonals, strict=True)
    ]
    columns = ["class", "original graph", "transformed graph"]
    items.append(table(columns, cells, "Links inside a class, percent", folded=True))
    words = (
        f"The transformed graph joins every node to the {positives} nodes most similar to it. "
        "By smoothed features it is what the method starts from, by embedding what training made of it."
    )
    return section("homophily", "Homophily", items, words)


def similar_mixing(
    nearest: NDArray[np.int64], labels: NDArray[np.int64], num_classes: int
) -> NDArray[np.float64]:
    """Where the links from each class to its most similar nodes lead; rows sum to one, or are zero."""
    here, there = np.repeat(labels, nearest.shape[1]), labels[nearest.ravel()]
    known = (here >= 0) & (there >= 0)
    counts = np.bincount(here[known] * num_classes + there[known], minlength=num_classes**2)
    counts = counts.reshape(num_classes, num_classes)
    return np.asarray(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1), dtype=np.float64)


def _overall(nearest: NDArray[np.int64], labels: NDArray[np.int64]) -> float:
    there = labels[nearest]
    known = (there >= 0) & (labels >= 0)[:, None]
    return float(((there == labels[:, None]) & known).sum() / max(int(known.sum()), 1))


def _row(name: str, share: float, role: str = "other") -> Item:
    return strip(name, [], 100 * share, None, role=role)
