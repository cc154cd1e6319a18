"""Scores in words, the same in the terminal and on the page."""

from collections.abc import Mapping, Sequence
from typing import Any

from spgcl.evaluation.scores import METRICS, PROTOCOLS
from spgcl.graph.display import aligned

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
            count, unit = _count(scores, record)
            std = f"{scores['std']:.2f}" if count > 1 else "-"
            rows.append([name, METRICS[record["metric"]], f"{scores['mean']:.2f}", std, f"{count} {unit}"])
        rows += [
            ["", METRICS[other], f"{mean:.2f}", "-", ""] for other, mean in scores.get("others", {}).items()
        ]
    for name, baseline in record.get("baselines", {}).items():
        score = f"{baseline['mean']:.2f}" if "mean" in baseline else "-"
        std = f"{baseline['std']:.2f}" if "std" in baseline else "-"
        rows.append([BASELINES[name], METRICS[record["metric"]], score, std, baseline.get("left_out", "")])
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
    below = ", ".join(named[name] for name, mean in known.items() if mean < score)
    above = ", ".join(named[name] for name, mean in known.items() if mean >= score)
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
            f"{channel['reliability']:z.2f}",
            f"{channel['deviation']:.2f}",
            f"{channel['weight']:.2f}" if "weight" in channel else "-",
        ]
        for name, channel in named.items()
    ]


def comparison_rows(record: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Columns and rows of a comparison of methods, see `spgcl.runs.compare`; best validation first."""
    if record["chosen"] is None:
        columns = {name: column for name, (column, _) in criteria_in(record["methods"]).items()}
        columns["seconds"] = "seconds"
    else:
        columns = {"validation": "validation", "test": "test", "difference": "difference", "knn": "k-NN"}
        columns["seconds"] = "seconds"
    ordered = sorted(record["methods"], key=lambda row: -row.get("validation", float("-inf")))
    rows = [[row["method"], *(comparison_cell(row, name) for name in columns)] for row in ordered]
    return ["method", *columns.values()], rows


# Columns of numbers without labels, and what each says of the vectors of a method.
CRITERIA = {
    "held_out_edges": (
        "held-out edges",
        "AUC of a tenth of the edges, left out of training; 50: chance, less: unlike ends",
    ),
    "held_out_features": (
        "held-out features",
        "agreement with a tenth of the columns, left out of that training; 0 is chance",
    ),
    "reliability": (
        "reliability",
        "agreement of vectors of two halves of the graph; collapsed vectors agree too",
    ),
    "seeds": (
        "seeds",
        "agreement of vectors of two trainings; collapsed vectors agree too",
    ),
    "link_auc": ("link AUC", "as held-out edges, of the run itself (--hold-out-edges)"),
}
NO_CHOICE = (
    "None of these is a score: a method far behind in several is probably worse, small differences say "
    "nothing, labels of a few nodes do."
)


def criteria_in(rows: Sequence[Mapping[str, Any]]) -> dict[str, tuple[str, str]]:
    """Columns without labels that some row has, with their meaning."""
    return {name: words for name, words in CRITERIA.items() if any(name in row for row in rows)}


def criteria_words(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the columns without labels say, and what they do not."""
    return [*aligned([*criteria_in(rows).values()]), NO_CHOICE]


def comparison_cell(row: Mapping[str, Any], name: str) -> str:
    """One cell of a comparison of methods."""
    value = row.get(name)
    if value is None:
        return "-"
    if name == "test":
        return f"{value:.2f} ± {row['std']:.2f}"
    if name == "difference":
        return f"{value['mean']:+.2f} ({value['above']} of {value['pairs']} splits above)"
    if name == "reliability":
        return f"{value['reliability']:.2f}"
    return f"{value:.1f}" if name == "seconds" else f"{value:.2f}"


def comparison_words(record: Mapping[str, Any]) -> list[str]:
    """What a comparison of methods says."""
    left_out = [
        f"{row['method']} is left out: {row['left_out']}" for row in record["methods"] if "left_out" in row
    ]
    if record["chosen"] is None:
        return [
            *left_out,
            *record.get("graph", {}).get("verdict", []),
            *criteria_words(record["methods"]),
        ]
    best = next(row for row in record["methods"] if row["method"] == record["chosen"])
    metric, majority = METRICS[record["metric"]], record["majority"]["mean"]
    said = f"Validation chooses {best['method']}: test {metric} {best['test']:.2f}"
    if best["test"] <= majority:
        return [*left_out, f"{said}, not above the majority class ({majority:.2f})."]
    return [*left_out, f"{said}; the majority class has {majority:.2f}."]


def score_text(record: Mapping[str, Any]) -> str:
    """The main score with its deviation, or an empty string if there is none."""
    if "mean" not in record:
        return ""
    score = f"{record['mean']:.2f} ± {record['std']:.2f} % {METRICS[record['metric']]}"
    return f"{score}, deviation over {deviation_over(record)}"


def deviation_over(record: Mapping[str, Any]) -> str:
    """What the deviation of the main score is taken over, such as "10 splits"."""
    return "{} {}".format(*_count(record, record))


def _count(scores: Mapping[str, Any], record: Mapping[str, Any]) -> tuple[int, str]:
    """How many of what the deviation of scores in a record is taken over, as in 10 splits or 1 split."""
    over = scores["std_over"]
    if over == "retrainings":
        count = len(record["retrainings"])
    else:
        unit = "split" if over == "splits" else "start"
        count = len({score[unit] for score in scores.get("splits", record.get("splits"))})
    return count, over if count != 1 else over.removesuffix("s")


def graph_rows(record: Mapping[str, Any]) -> list[list[str]]:
    """One row per property of a graph, see `spgcl inspect`."""
    degree = record["degree"]
    rows = [
        ["nodes", f"{record['nodes']:,}"],
        ["edges", f"{record['edges']:,} {'directed' if record['directed'] else 'undirected'}"],
        ["edge weights", "yes" if record["weighted"] else "no"],
        ["features", _features(record)],
        [
            "degree",
            f"{degree['min']:,} to {degree['max']:,}, mean {degree['mean']:.2f}, median {degree['median']:g}",
        ],
        ["isolated nodes", f"{record['isolated_nodes']:,}"],
        ["connected components", f"{record['connected_components']:,}"],
        ["memory", f"{record['memory_bytes'] / 2**20:.1f} MiB"],
    ]
    return rows + _label_rows(record) if "classes" in record else rows


def _features(record: Mapping[str, Any]) -> str:
    if not record["features"]:
        return "none"
    return f"{record['features']:,}, {100 * record['feature_density']:.3g}% nonzero"


def _label_rows(record: Mapping[str, Any]) -> list[list[str]]:
    counts = record["class_counts"]
    names = record.get("class_names") or [str(value) for value in range(len(counts))]
    shown = [f"{name}: {count:,}" for name, count in zip(names, counts, strict=True)]
    rows = [
        ["classes", f"{record['classes']:,} ({', '.join(shown[:10])}{', ...' if len(shown) > 10 else ''})"],
        ["edge homophily", f"{record['edge_homophily']:.3f}"],
        ["node homophily", f"{record['node_homophily']:.3f}"],
    ]
    if transformed := record.get("transformed"):
        nodes = f"{transformed['anchors']:,} {'sampled nodes' if transformed['sampled'] else 'nodes'}"
        what = f"top {transformed['positives']} by {transformed['hops']}-hop features, {nodes}"
        rows.append(["transformed homophily", f"{transformed['homophily']:.3f} ({what})"])
    if record["unlabelled_nodes"]:
        rows.insert(1, ["unlabelled nodes", f"{record['unlabelled_nodes']:,}"])
    return rows
