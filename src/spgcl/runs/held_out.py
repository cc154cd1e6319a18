"""Methods without labels: vectors of a training that did not see some of the edges and feature columns."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spgcl.errors import InputError, note
from spgcl.evaluation import link_scores
from spgcl.evaluation.criteria import agreement, columns_of, without_columns
from spgcl.graph import Graph
from spgcl.methods.parts.halves import incomparable
from spgcl.runs.plan import Plan, Watch
from spgcl.runs.record import read_results
from spgcl.runs.sources import training_graph
from spgcl.training.fitting import fit

# Fraction of edges and of feature columns.
FRACTION = 0.1


def held_out(planned: Plan, watch: Watch) -> dict[str, float]:
    """What vectors tell of edges and feature columns that were left out of a training for that.

    `edges` is the area under the curve, in percent, by which similarity tells them from non-edges; `features`
    the agreement with the columns. Either is missing where it cannot be measured.
    """
    run, graph, options = planned.trainings[0].run, planned.loaded.graph, planned.request.options
    try:
        rest, pairs = training_graph(graph, options.given(), FRACTION, run.seed)
    except InputError as error:
        note(f"no edges are held out to compare {run.method}: {error}")
        return {}
    hidden = _hidden_columns(graph, run.seed) if options.structural is None else np.zeros(0, dtype=np.bool_)
    part = without_columns(rest, hidden) if hidden.any() else rest
    with watch(replace(run, dataset=f"a part of {run.dataset}")) as controls:
        fitted = fit(
            run.method,
            part,
            settings=run.settings,
            seed=run.seed,
            device=planned.request.device,
            precision=run.precision,
            deterministic=run.deterministic,
            controls=controls,
        )
    if not fitted.history.finished:
        raise KeyboardInterrupt
    vectors = fitted.embed()
    assert pairs is not None
    found = {"edges": link_scores(vectors, *pairs)["auc"]}
    return found | ({"features": agreement(vectors, columns_of(graph, hidden))} if hidden.any() else {})


def _hidden_columns(graph: Graph, seed: int) -> NDArray[np.bool_]:
    hidden = np.zeros(graph.num_features, dtype=np.bool_)
    if not incomparable(graph):
        count = max(1, round(FRACTION * graph.num_features))
        hidden[np.random.default_rng(seed).choice(graph.num_features, count, replace=False)] = True
    return hidden


def criteria_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """What an evaluation without labels has to compare methods by."""
    found = {"seeds": record["seeds"]} if "seeds" in record else {}
    if "link_prediction" in record:
        found["link_auc"] = record["link_prediction"]["auc"]
    # Every retraining has vectors of its own: those of the first stand for them.
    first = record.get("retrainings", [record])[0]
    if first.get("vectors"):
        found["reliability"] = first["vectors"]
    return found | {f"held_out_{name}": value for name, value in first.get("held_out", {}).items()}


def agreement_of_seeds(folders: list[Path]) -> float:
    """How alike the vectors of two retrainings are."""
    first, second = (read_results(folder)[1] for folder in folders[:2])
    return agreement(first, second)
