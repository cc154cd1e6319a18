"""What a page begins with: what the run is worth, in a sentence and next to scores without training."""

from collections.abc import Callable, Mapping
from typing import Any

from spgcl.evaluation.majority import majority_class
from spgcl.evaluation.scores import METRICS
from spgcl.report.charts import Item, facts, section, strip, strips, text
from spgcl.report.material import Material
from spgcl.report.paper import paper_figure
from spgcl.report.summary import headline
from spgcl.report.words import deviation_over, judgement
from spgcl.runs.baselines import WITHOUT_TRAINING, baselines
from spgcl.runs.sources import Loaded

Rows = dict[str, dict[str, Any]]


def verdict(material: Material, rows: Rows, signal: list[str]) -> Item:
    """The first section of a run's page.

    Args:
        material: The run.
        rows: See `without_training`; none if the run has no score.
        signal: What is said of its graph without labels, which leads where there is no score.
    """
    record = {**(material.evaluation or {}), "baselines": rows}
    items = [facts(headline(material.run))]
    words = signal[0]
    if rows:
        words = " ".join(judgement(record))
        items.insert(0, _scores(material, record))
        items += [
            text(f"No row for {WITHOUT_TRAINING[name]}: {scores['left_out']}")
            for name, scores in rows.items()
            if "left_out" in scores
        ]
    return section("verdict", "Verdict", items, words)


def without_training(material: Material, say: Callable[[str], None], *names: str) -> Rows:
    """Scores without training, the majority class first, or why one is left out; all, or those named."""
    assert material.splits is not None
    run = material.run
    loaded = Loaded(run.dataset, material.graph, material.labels, material.splits, material.metric)
    protocol = (material.evaluation or {}).get("protocol", "paper")
    majority = majority_class(material.labels, material.splits, metric=material.metric)
    rows = baselines(
        material.folder,
        run,
        loaded,
        protocol,
        names=names or tuple(name for name in WITHOUT_TRAINING if run.trains or name != "untrained"),
        device=material.device,
        say=say,
    )
    return {"majority": majority.as_record(), **rows}


def scored_strips(rows: Rows) -> list[Item]:
    """A row of dots per score without training."""
    names = {"majority": "majority class", **WITHOUT_TRAINING}
    return [scored_strip(names[name], scores) for name, scores in rows.items() if "mean" in scores]


def scored_strip(
    name: str, scores: Mapping[str, Any], role: str = "other", colour: int | None = None
) -> Item:
    """A row of dots from the record of an evaluation."""
    tests = [score["test"] for score in scores["splits"]]
    deviation = scores["std"] if len(tests) > 1 else None
    return strip(name, tests, scores["mean"], deviation, role=role, colour=colour)


def _scores(material: Material, record: dict[str, Any]) -> Item:
    rows = [scored_strip(f"this run ({material.run.method})", record, role="own")]
    rows += [*scored_strips(record["baselines"]), *_quoted(material)]
    unit = f"{METRICS[record['metric']]}, percent; dots: single scores, bars: means, ± over "
    return strips("Scores with and without training", rows, unit + deviation_over(record))


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
