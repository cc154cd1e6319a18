"""What label-free criteria say about vectors, beside their validation score under the tuned probe.

One line per graph and setting, appended to results/criteria.jsonl; what has a line is skipped. Every setting
is trained three times: on the graph with two seeds, and without a tenth of the edges and feature columns.

python benchmarks/criteria.py cora chameleon-filtered
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from record import RESULTS, command_line
from trainings import graphs_parser

import spgcl
from spgcl import Dataset
from spgcl.datasets import Splits
from spgcl.evaluation import hold_out_edges, link_scores, tuned_probe
from spgcl.evaluation.criteria import agreement, columns_of, unit_rows, without_columns
from spgcl.evaluation.reliability import mean_cosine, vector_reliability
from spgcl.experiments.measures import summary
from spgcl.experiments.results import append, machine, read_lines
from spgcl.graph import Graph
from spgcl.training.fitting import Fitted, fit

SPLITS, HELD_OUT = 3, 0.1
CPU = torch.device("cpu")
# Short trainings of small encoders: criteria have to tell good vectors from bad ones, not the best from good.
SMALL: dict[str, Any] = {"hidden": 128, "steps": 60}
SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "raw": ("raw", {}),
    "smoothed": ("smoothed", {}),
    "joined": ("smoothed", {"joined": True}),
    "untrained": ("untrained", {"hidden": 128}),
    "fastrp": ("fastrp", {"hidden": 128}),
    "spectral": ("spectral", {"hidden": 128}),
    "auto": ("auto", {}),
    "spgcl": ("spgcl", SMALL),
    "spgcl, mlp": ("spgcl", {**SMALL, "encoder": "mlp"}),
    "dgi": ("dgi", SMALL),
    "bgrl": ("bgrl", SMALL),
    "gae": ("gae", SMALL),
}


def measure(dataset: Dataset, method: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Validation score and every criterion, of which larger is meant to be better."""
    graph = dataset.graph
    fitted = trained(graph, method, settings, seed=0)
    vectors = fitted.embed()
    left, edges, non_edges = hold_out_edges(graph, HELD_OUT, seed=0)
    hidden_columns = np.random.default_rng(0).random(graph.num_features) < HELD_OUT
    partial = trained(without_columns(left, hidden_columns), method, settings, seed=0).embed()
    parts = dataset.splits
    splits = Splits(parts.train[:SPLITS], parts.validation[:SPLITS], parts.test[:SPLITS], parts.source)
    repeated = vector_reliability(fitted.method, graph, repeats=2)
    criteria = {
        "seeds": agreement(vectors, trained(graph, method, settings, seed=1).embed()),
        "held-out edges": link_scores(partial, edges, non_edges)["auc"] / 100,
        "held-out features": agreement(partial, columns_of(graph, hidden_columns)),
        "reliability": repeated["reliability"] if repeated else None,
        "spread": 1 - mean_cosine(vectors),
        "RankMe": effective_rank(vectors),
    }
    found = tuned_probe(vectors, dataset.labels, splits, metric=dataset.metric)
    rounded = {name: None if value is None else round(value, 5) for name, value in criteria.items()}
    return {"validation": summary(found)["validation"], "criteria": rounded}


def trained(graph: Graph, method: str, settings: dict[str, Any], *, seed: int) -> Fitted:
    """A method trained on a graph."""
    return fit(method, graph, settings=settings, seed=seed, device=CPU)


def effective_rank(rows: NDArray[np.float32]) -> float:
    """Exponential of the entropy of the singular values (RankMe, Garrido et al., ICML 2023)."""
    values = np.linalg.svd(unit_rows(rows), compute_uv=False)
    fractions = values / values.sum() + 1e-7
    return float(np.exp(-(fractions * np.log(fractions)).sum()))


def main() -> None:
    arguments = graphs_parser(__doc__, RESULTS / "criteria.jsonl").parse_args()
    known = {(line["dataset"], line["setting"]) for line in read_lines(arguments.results)}
    for name in arguments.datasets:
        dataset = spgcl.load(name)
        for setting, (method, settings) in SETTINGS.items():
            if (name, setting) not in known:
                record = {"dataset": name, "setting": setting, **measure(dataset, method, settings)}
                more = {**machine(CPU), "command": command_line("criteria.py", arguments.results)}
                append(arguments.results, {**record, **more})
                print(name, setting, record["validation"], record["criteria"], flush=True)


if __name__ == "__main__":
    main()
