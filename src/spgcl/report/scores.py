"""Scores in a table, and which classes are confused."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spgcl.evaluation.linear_probe import predict_first_split
from spgcl.methods import find
from spgcl.report.charts import Item, matrix, section, table, text
from spgcl.report.homophily import MOST_CLASSES, count_pairs, row_fractions
from spgcl.report.material import Material
from spgcl.report.words import SCORE_COLUMNS, score_rows


def evaluation(material: Material, predicted: NDArray[np.int64] | None) -> Item:
    """The section about scores, with the predictions of `first_split` if there are any."""
    record = material.evaluation or {}
    # Those without training are in the verdict.
    rows = score_rows({**record, "baselines": {}})
    items = [table(SCORE_COLUMNS, rows, "Scores, percent")]
    if predicted is None or material.labels is None:
        words = "Without labels only link prediction has a score; give labels by --labels FILE."
        return section("evaluation", "Evaluation", items if rows else [text(words)])
    if len(material.names) <= MOST_CLASSES:
        counts = count_pairs(material.labels, predicted, len(material.names))
        fractions = row_fractions(counts)
        items.append(matrix("Confusion, percent", material.names, fractions, "true", "predicted"))
    return section("evaluation", "Evaluation", items, _explanation(record))


def first_split(material: Material) -> NDArray[np.int64]:
    """The class predicted for each test node of the first split, -1 for all other nodes."""
    assert material.splits is not None
    predicted = np.full(material.graph.num_nodes, -1)
    if find(material.run.method).supervised:
        nodes = np.flatnonzero(material.splits.test[0])
        predicted[nodes] = material.vectors[nodes, : len(material.names)].argmax(axis=1)
    else:
        nodes, classes = predict_first_split(
            material.vectors, material.labels, material.splits, metric=material.metric, device=material.device
        )
        predicted[nodes] = classes
    return predicted


def _explanation(record: dict[str, Any]) -> str:
    words = f"By {record.get('split_source', 'own')} splits."
    if record["protocol"] == "predictions":
        words += " The models of this run predict classes themselves; the other rows are linear probes."
    words += " The matrix and the map show what is predicted for the test nodes of the first split"
    return words + (" by the paper's probe." if record["protocol"] == "tuned" else ".")
