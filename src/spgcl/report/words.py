"""Scores in words, the same in the terminal and on the page."""

from collections.abc import Mapping
from typing import Any

from spgcl.evaluation.scores import METRICS, PROTOCOLS

# Baselines beside every score.
BASELINES = {
    "majority": "the majority class",
    "raw": "raw features",
    "smoothed": "smoothed features",
}
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


def judgement(record: Mapping[str, Any]) -> list[str]:
    """What a score is worth beside its `baselines`: the majority class, and features without training."""
    rows = record.get("baselines", {})
    known = {name: rows[name]["mean"] for name in BASELINES if "mean" in rows.get(name, {})}
    if "mean" not in record or "majority" not in known:
        return []
    score, metric = record["mean"], METRICS[record["metric"]]
    if score <= known["majority"]:
        return [
            f"Not above the majority class: {metric} {score:.2f}, against {known['majority']:.2f} for giving "
            "every node the same class."
        ]
    named = {name: f"{BASELINES[name]} ({mean:.2f})" for name, mean in known.items()}
    below = " and ".join(named[name] for name, mean in known.items() if mean < score)
    above = " and ".join(named[name] for name, mean in known.items() if mean >= score)
    words = f"{metric[0].upper()}{metric[1:]} {score:.2f}: above {below}"
    return [f"{words}, not above {above}." if above else f"{words}."]


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


def _count(over: str, record: Mapping[str, Any]) -> tuple[int, str]:
    """How many of what a deviation is taken over, as in 10 splits or 1 split."""
    if over == "retrainings":
        count = len(record["retrainings"])
    else:
        unit = "split" if over == "splits" else "start"
        count = len({score[unit] for score in record["splits"]})
    return count, over if count != 1 else over.removesuffix("s")
