"""What the embeddings are good for: scores split by split, beside the paper's and those of no training."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spgcl.evaluation.linear_probe import predict_first_split
from spgcl.evaluation.scores import METRICS, PROTOCOLS
from spgcl.methods import find
from spgcl.report.baselines import baselines
from spgcl.report.charts import Item, matrix, section, strip, strips, table, text
from spgcl.report.material import Material
from spgcl.report.paper import paper_figure
from spgcl.report.summary import deviation_over

_MOST_CLASSES = 40
_WORDS = {
    "raw": "raw features, no training",
    "smoothed": "smoothed features, no training",
    "untrained": "encoder before training",
}


def evaluation(material: Material, say: Callable[[str], None]) -> Item:
    """The section about scores.

    Args:
        material: A run and what evaluation found.
        say: Told what is being computed.
    """
    record = material.evaluation or {}
    items = [table(["evaluation", "score", "deviation"], score_rows(record), "Scores, percent")]
    if "mean" not in record or material.labels is None or material.splits is None:
        words = "Without labels only link prediction has a score; give labels by --labels FILE."
        return section("evaluation", "Evaluation", items if record else [text(words)])
    rows = [strip(_own_name(material), _tests(record), record["mean"], record["std"], role="own")]
    for name, scores in baselines(material, say).items():
        if "left_out" in scores:
            items.append(text(f"No row for {_WORDS[name]}: {scores['left_out']}"))
        else:
            rows.append(strip(_WORDS[name], _tests(scores), scores["mean"], scores["std"]))
    rows += _quoted(material)
    unit = f"{METRICS[record['metric']]}, percent"
    items.insert(0, strips("Every split, and what training added", rows, unit))
    say("predicting the first split")
    if len(material.names) <= _MOST_CLASSES:
        shares = confusion(*_predicted(material), material.labels, len(material.names))
        items.append(matrix("Confusion, first split", material.names, shares, "true", "predicted"))
    return section("evaluation", "Evaluation", items, _explained(record))


def score_rows(record: dict[str, Any]) -> list[list[str]]:
    """One row a score of `eval.json`."""
    rows = []
    if "mean" in record:
        rows.append([PROTOCOLS[record["protocol"]], f"{record['mean']:.2f}", _deviation(record)])
    if "knn" in record:
        rows.append(["k-NN", f"{record['knn']['mean']:.2f}", _deviation(record["knn"])])
    for part, name in (("k-means", "clustering"), ("link prediction", "link_prediction")):
        words = (metric.replace("_", " ") for metric in record.get(name, {}))
        values = record.get(name, {}).values()
        rows += [[f"{part}, {word}", f"{value:.2f}", ""] for word, value in zip(words, values, strict=True)]
    return rows


def _deviation(scores: dict[str, Any]) -> str:
    over = deviation_over(scores)
    return over if over.startswith("1 ") else f"{scores['std']:.2f} over {over}"


def confusion(
    nodes: NDArray[np.int64], predicted: NDArray[np.int64], labels: NDArray[np.int64], num_classes: int
) -> NDArray[np.float64]:
    """Of each true class, the share predicted as each class, shape (classes, classes)."""
    counts = np.zeros((num_classes, num_classes))
    np.add.at(counts, (labels[nodes], predicted), 1)
    return np.asarray(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1), dtype=np.float64)


def _predicted(material: Material) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    assert material.splits is not None
    if find(material.run.method).supervised:
        nodes = np.flatnonzero(material.splits.test[0])
        return nodes, material.vectors[nodes, : len(material.names)].argmax(axis=1)
    return predict_first_split(
        material.vectors, material.labels, material.splits, metric=material.metric, device=material.device
    )


def _tests(scores: dict[str, Any]) -> list[float]:
    return [score["test"] for score in scores["splits"]]


def _own_name(material: Material) -> str:
    return f"this run ({material.run.method})"


def _quoted(material: Material) -> list[Item]:
    """The paper's row for this method and its own method's; a user's file is none of the paper's graphs."""
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


def _explained(record: dict[str, Any]) -> str:
    words = f"Dots are single scores, bars their mean; ± is the deviation over {deviation_over(record)}"
    words += f" ({record.get('split_source', 'own')} splits)."
    if record["protocol"] == "predictions":
        words += " The models of this run predict classes themselves; the other rows are linear probes."
    return words + " The confusion is that of the test nodes of the first split."
