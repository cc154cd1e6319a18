"""Scores split by split, next to those of the paper and those without training."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spgcl.evaluation.linear_probe import predict_first_split
from spgcl.evaluation.scores import METRICS
from spgcl.methods import find
from spgcl.report.baselines import WITHOUT_TRAINING, baselines
from spgcl.report.charts import Item, matrix, section, strip, strips, table, text
from spgcl.report.homophily import MOST_CLASSES, count_pairs, row_fractions
from spgcl.report.material import Material
from spgcl.report.paper import paper_figure
from spgcl.report.words import SCORE_COLUMNS, deviation_over, score_rows


def evaluation(material: Material, say: Callable[[str], None]) -> Item:
    """The section about scores; `say` is called with what is being computed."""
    record = material.evaluation or {}
    items = [table(SCORE_COLUMNS, score_rows(record), "Scores, percent")]
    if "mean" not in record or material.labels is None or material.splits is None:
        words = "Without labels only link prediction has a score; give labels by --labels FILE."
        return section("evaluation", "Evaluation", items if record else [text(words)])
    rows = [_strip(f"this run ({material.run.method})", record, role="own")]
    for name, scores in baselines(material, say).items():
        if "left_out" in scores:
            items.append(text(f"No row for {WITHOUT_TRAINING[name]}: {scores['left_out']}"))
        else:
            rows.append(_strip(WITHOUT_TRAINING[name], scores))
    rows += _quoted(material)
    unit = f"{METRICS[record['metric']]}, percent"
    items.insert(0, strips("Scores of every split, with and without training", rows, unit))
    say("predicting the first split")
    if len(material.names) <= MOST_CLASSES:
        nodes, predicted = _predicted(material)
        fractions = row_fractions(count_pairs(material.labels[nodes], predicted, len(material.names)))
        items.append(matrix("Confusion, first split", material.names, fractions, "true", "predicted"))
    return section("evaluation", "Evaluation", items, _explanation(record))


def _strip(name: str, scores: dict[str, Any], role: str = "other") -> Item:
    tests = [score["test"] for score in scores["splits"]]
    return strip(name, tests, scores["mean"], scores["std"], role=role)


def _predicted(material: Material) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    assert material.splits is not None
    if find(material.run.method).supervised:
        nodes = np.flatnonzero(material.splits.test[0])
        return nodes, material.vectors[nodes, : len(material.names)].argmax(axis=1)
    return predict_first_split(
        material.vectors, material.labels, material.splits, metric=material.metric, device=material.device
    )


def _quoted(material: Material) -> list[Item]:
    """The paper's scores of this method and of its own; none for a user's file named like a data set."""
    run = material.run
    if run.graph["source"] != run.dataset:
        return []
    rows = []
    for method in dict.fromkeys([run.method, "spgcl"]):
        figure = paper_figure(method, run.dataset)
        if figure is not None:
            name = f"{method}, table {figure.table} of the paper"
            rows.append(strip(name, [], figure.mean, figure.deviation, role="quoted"))
    return rows


def _explanation(record: dict[str, Any]) -> str:
    words = f"Dots are single scores, bars their mean; ± is the deviation over {deviation_over(record)}"
    words += f" ({record.get('split_source', 'own')} splits)."
    if record["protocol"] == "predictions":
        words += " The models of this run predict classes themselves; the other rows are linear probes."
    return words + " The confusion matrix is that of the test nodes of the first split."
