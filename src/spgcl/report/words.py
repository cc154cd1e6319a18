"""Scores in words, the same in the terminal and on the page."""

from collections.abc import Mapping
from typing import Any

from spgcl.evaluation.scores import METRICS, PROTOCOLS

SCORE_COLUMNS = ("evaluation", "metric", "percent", "std", "over")


def score_rows(record: Mapping[str, Any]) -> list[list[str]]:
    """One row of `SCORE_COLUMNS` per score of an evaluation record, see `eval.json`."""
    rows = []
    for name, scores in (
        (PROTOCOLS.get(record.get("protocol", ""), ""), record),
        ("k-NN", record.get("knn", {})),
    ):
        if "mean" in scores:
            count, unit = _count(scores["std_over"], record)
            std = f"{scores['std']:.2f}" if count > 1 else "-"
            rows.append([name, METRICS[record["metric"]], f"{scores['mean']:.2f}", std, f"{count} {unit}"])
    for name, key in (("k-means", "clustering"), ("link prediction", "link_prediction")):
        for metric, value in record.get(key, {}).items():
            rows.append([name, metric.replace("_", " "), f"{value:.2f}", "-", ""])
    return rows


RELIABILITY_COLUMNS = ("channel", "reliability", "deviation", "weight")


def reliability_rows(record: Mapping[str, Any]) -> list[list[str]]:
    """One row of `RELIABILITY_COLUMNS` per channel of a graph, and one for vectors."""
    named = dict(record["channels"])
    if record.get("vectors"):
        named["the vectors"] = record["vectors"]
    return [
        [
            name,
            f"{channel['reliability']:.2f}",
            f"{channel['deviation']:.2f}",
            f"{channel['weight']:.2f}" if "weight" in channel else "-",
        ]
        for name, channel in named.items()
    ]


def deviation_over(record: Mapping[str, Any]) -> str:
    """What the deviation of the main score is taken over, such as "10 splits"."""
    return "{} {}".format(*_count(record["std_over"], record))


def score_text(record: Mapping[str, Any] | None) -> str:
    """The main score with its deviation, or an empty string if there is none."""
    if not record or "mean" not in record:
        return ""
    score = f"{record['mean']:.2f} ± {record['std']:.2f} % {METRICS[record['metric']]}"
    return f"{score}, deviation over {deviation_over(record)}"


def _count(over: str, record: Mapping[str, Any]) -> tuple[int, str]:
    """How many of what a deviation is taken over, as in 10 splits or 1 split."""
    if over == "retrainings":
        count = len(record["retrainings"])
    else:
        unit = "split" if over == "splits" else "start"
        count = len({score[unit] for score in record["splits"]})
    return count, over if count != 1 else over.removesuffix("s")
