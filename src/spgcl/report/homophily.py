"""How many links stay inside a class: in the graph, and among the most similar nodes."""

import numpy as np
from numpy.typing import NDArray

from spgcl.evaluation.statistics import class_mixing, edge_homophily
from spgcl.evaluation.transformed import transformed_homophily
from spgcl.report.charts import Item, matrix, section, strip, strips, table, text
from spgcl.report.material import Material

# Larger matrices cannot be read.
MOST_CLASSES = 40


def homophily(material: Material) -> Item:
    """The original graph and the transformed one, overall and class by class."""
    if material.labels is None:
        words = "Homophily needs labels; give them by --labels FILE."
        return section("homophily", "Homophily", [text(words)])
    labels, graph, names = material.labels, material.graph, material.names
    positives = min(int(material.run.settings.get("positives", 5)), material.nearest[0].shape[1])
    shown = labels[material.shown]
    similar = count_pairs(
        np.repeat(shown, positives), shown[material.nearest[0][:, :positives].ravel()], len(names)
    )
    smoothed = transformed_homophily(graph, labels, positives=positives).homophily
    rows = [
        _row("original graph", edge_homophily(graph, labels)),
        _row("most similar by smoothed features", smoothed),
        _row("most similar by embedding", float(np.trace(similar) / max(similar.sum(), 1)), role="own"),
    ]
    items = [strips("Links inside a class", rows, "percent of links", (0, 100))]
    before, after = class_mixing(graph, labels), row_fractions(similar)
    if len(names) <= MOST_CLASSES:
        items.append(matrix("Original graph", names, before, "from", "to"))
        items.append(matrix("Transformed graph (most similar by embedding)", names, after, "from", "to"))
    diagonals = 100 * np.stack([np.diag(before), np.diag(after)], axis=1)
    cells = [[name, *(f"{value:.1f}" for value in pair)] for name, pair in zip(names, diagonals, strict=True)]
    columns = ["class", "original graph", "transformed graph"]
    items.append(table(columns, cells, "Links inside each class, percent", folded=True))
    words = (
        f"The transformed graph joins every node to the {positives} nodes most similar to it: by smoothed "
        "features, as before training, and by embedding, as after training."
    )
    return section("homophily", "Homophily", items, words)


def count_pairs(rows: NDArray[np.int64], columns: NDArray[np.int64], num_classes: int) -> NDArray[np.int64]:
    """How often each class of `rows` is paired with each class of `columns`; pairs with a -1 do not count."""
    known = (rows >= 0) & (columns >= 0)
    pairs = rows[known] * num_classes + columns[known]
    return np.bincount(pairs, minlength=num_classes**2).reshape(num_classes, num_classes)


def row_fractions(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Counts as fractions of their rows; empty rows stay zero."""
    return np.asarray(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1), dtype=np.float64)


def _row(name: str, fraction: float, role: str = "other") -> Item:
    return strip(name, [], 100 * fraction, None, role=role)
