"""What is measured of a run: scores, curves during training, memory, or the graph alone."""

import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import lru_cache
from statistics import fmean
from typing import Any

import torch
from numpy.typing import NDArray

from spgcl.datasets.comparison import compare
from spgcl.datasets.dataset import Dataset, random_splits
from spgcl.datasets.entries import entries
from spgcl.datasets.loading import load
from spgcl.datasets.storage import is_on_disk
from spgcl.datasets.synthetic import contextual_block_model
from spgcl.engine.device import (
    choose_device,
    forget_peak_memory,
    held_memory_mib,
    is_accelerator,
    peak_memory_mib,
    return_memory,
    use_threads,
)
from spgcl.errors import InputError, Note
from spgcl.evaluation import Scores, probe, score_predictions, tuned_probe
from spgcl.evaluation.health import observer
from spgcl.evaluation.linear_probe import EPOCHS
from spgcl.evaluation.statistics import edge_homophily, table_figures
from spgcl.experiments.audit import Curves, by_rule, joined, pooled_masks, probe_curves, tuned_point
from spgcl.experiments.plan import Run
from spgcl.experiments.results import machine
from spgcl.methods import Method, Prepared, Supervision, find
from spgcl.training.fitting import Fitted, fit
from spgcl.training.loop import Controls

Record = dict[str, Any]
PROBES: dict[str, Callable[..., Scores]] = {"paper": probe, "tuned": tuned_probe}


def measured(run: Run, device: torch.device) -> Record:
    """The line of a run: what it is, what was measured, and where."""
    with warnings.catch_warnings():
        # Notes are for whoever fits one graph; hundreds of runs would repeat them.
        warnings.simplefilter("ignore", Note)
        found = MEASURES[run.measure](run, device)
    return_memory(device)
    return {
        "digest": run.digest,
        "measure": run.measure,
        "dataset": run.graph,
        "method": run.method,
        "preset": run.preset,
        "given": dict(run.given),
        "settings": run.settings,
        "seed": run.seed,
        **({"options": dict(run.options)} if run.options else {}),
        **found,
        **machine(device),
    }


def scores(run: Run, device: torch.device) -> Record:
    """Train once; scores under the probes, or of its own predictions for a supervised method.

    With the option `tenths`, on ten random splits with a tenth of the nodes labelled.
    """
    dataset = _loaded(run.graph)
    tenths = run.options.get("tenths", False)
    if tenths:
        dataset = replace(dataset, splits=random_splits(dataset.labels, seed=0))
    fitted, seconds, memory = _trained(run, dataset, device)
    started = time.perf_counter()
    vectors = fitted.embed()
    results = scored(vectors, dataset, run.method, run.options.get("probes", tuple(PROBES)), device)
    return {
        **({"splits": dataset.splits.source} if tenths else {}),
        "metric": dataset.metric,
        "scores": {result.protocol: summary(result) for result in results},
        "observed": fitted.method.observe(fitted.prepared),
        "seconds": {"fit": seconds, "eval": round(time.perf_counter() - started, 2)},
        "peak_mib": memory,
    }


def scored(
    vectors: NDArray[Any], dataset: Dataset, method: str, probes: tuple[str, ...], device: torch.device
) -> list[Scores]:
    """Scores under each probe; those of its own predictions for a supervised method."""
    task = (vectors, dataset.labels, dataset.splits)
    if find(method).supervised:
        return [score_predictions(*task, metric=dataset.metric)]
    return [PROBES[name](*task, metric=dataset.metric, device=str(device)) for name in probes]


def summary(result: Scores) -> Record:
    """What a line keeps of an evaluation: test scores by split and their mean, mean validation score."""
    return {
        "test": round(result.mean, 3),
        "std": round(result.std, 3),
        "std_over": result.std_over,
        "validation": round(fmean(split.validation for split in result.splits), 3),
        "splits": [round(split.test, 3) for split in result.splits],
    }


def curves(run: Run, device: torch.device) -> Record:
    """Train once, and observe every few steps: homophily of the transformed graph, distances, coverage."""
    dataset = _loaded(run.graph)
    steps = run.settings["steps"]
    controls = Controls(
        observe=observer(dataset.labels, positives=run.settings.get("positives", 5)),
        observe_every=max(1, min(run.options.get("every", steps), steps)),
    )
    fitted, seconds, memory = _trained(run, dataset, device, controls)
    return {
        "observations": fitted.history.observations,
        "edge_homophily": edge_homophily(dataset.graph, dataset.labels),
        "seconds": {"fit": seconds},
        "peak_mib": memory,
    }


def memory(run: Run, device: torch.device) -> Record:
    """Peak memory of training and embedding and the time of a step; None where it does not fit.

    Graphs whose files are missing are replaced by drawn ones of the same size.
    """
    dataset, drawn = _of_its_size(run.graph)
    before = max(held_memory_mib(device), peak_memory_mib(device))
    record: Record = {"synthetic": drawn, "nodes": dataset.graph.num_nodes, "edges": dataset.graph.num_edges}
    try:
        fitted, _, _ = _trained(run, dataset, device)
        fitted.embed()
    except (InputError, RuntimeError) as error:
        if "memory" not in str(error):
            raise
        return {**record, "peak_mib": None, "before_mib": round(before, 1), "error": str(error)}
    return {
        **record,
        "peak_mib": round(peak_memory_mib(device), 1),
        "before_mib": round(before, 1),
        "ms_per_step": round(1000 * fitted.seconds["train"] / run.settings["steps"], 2),
    }


def statistics(run: Run, device: torch.device) -> Record:
    """Size, degrees and homophily of a graph, beside the paper's figures."""
    del device
    return {"figures": {name: asdict(figure) for name, figure in compare(run.graph, table_figures).items()}}


def epochs(run: Run, device: torch.device) -> Record:
    """Train once; scores by the rule that chooses the epoch, of the training and of the probe after it."""
    dataset = _loaded(run.graph)
    found: list[Curves] = []

    def observe(method: Method, prepared: Prepared) -> dict[str, float]:
        found.append(tuned_point(method.embed(prepared), dataset, device))
        return {}

    every = max(1, run.settings.get("steps", 0) // run.options.get("evaluations", 1))
    controls = Controls(observe=observe, observe_every=every)
    fitted, seconds, _ = _trained(run, dataset, device, controls)
    after = probe_curves(fitted.embed(), dataset, epochs=run.options.get("epochs", EPOCHS))
    # The first evaluation is that of the untrained network.
    trained = {"training": by_rule(joined(found[1:])), "evaluations": len(found) - 1} if found[1:] else {}
    return {**trained, "probe": by_rule(after), "seconds": {"fit": seconds}}


def masks(run: Run, device: torch.device) -> Record:
    """The tuned probe on a split's own test nodes, and on the test nodes of all splits."""
    dataset = _loaded(run.graph)
    fitted, _, _ = _trained(run, dataset, device)
    return pooled_masks(fitted.embed(), dataset)


def adjacency(run: Run, device: torch.device) -> Record:
    """The tuned probe on rows of the adjacency matrix, in which there are no features."""
    dataset = _loaded(run.graph)
    task = (dataset.graph.adjacency.toarray(), dataset.labels, dataset.splits)
    result = tuned_probe(*task, metric=dataset.metric, device=str(device))
    return {"metric": dataset.metric, "scores": {result.protocol: summary(result)}}


def _trained(
    run: Run, dataset: Dataset, device: torch.device, controls: Controls | None = None
) -> tuple[Fitted, float, float | None]:
    """The trained method, its seconds, and on an accelerator the peak without what was held before."""
    forget_peak_memory(device)
    before = held_memory_mib(device)
    supervised = find(run.method).supervised
    started = time.perf_counter()
    fitted = fit(
        run.method,
        dataset.graph,
        settings=run.settings,
        seed=run.seed,
        device=device,
        supervision=Supervision.of(dataset.labels, dataset.splits) if supervised else None,
        controls=controls,
    )
    seconds = round(time.perf_counter() - started, 2)
    # On the CPU, the peak includes what earlier runs of the process left behind.
    peak = round(peak_memory_mib(device) - before, 1) if is_accelerator(device) else None
    return fitted, seconds, peak


@lru_cache(maxsize=2)
def _loaded(name: str) -> Dataset:
    return load(name)


def _of_its_size(name: str) -> tuple[Dataset, bool]:
    """A data set, or a drawn graph of its size if its files are missing; and whether it was drawn."""
    known = entries().get(name)
    if known is None or is_on_disk(known, known.files):
        return load(name), False
    facts = known.paper
    dataset = contextual_block_model(
        num_nodes=int(facts["nodes"]),
        num_classes=int(facts["classes"]),
        average_degree=2 * facts["edges"] / facts["nodes"],
        homophily=facts["edge_homophily"],
        num_features=int(facts["features"]),
        signal=1.0,
        seed=0,
        name=name,
    )
    return dataset, True


def worker_device(name: str, threads: int) -> torch.device:
    """The device of a worker process, with its share of the cores, or what the environment allows."""
    use_threads(min(threads, torch.get_num_threads()))
    return choose_device(name)


MEASURES: dict[str, Callable[[Run, torch.device], Record]] = {
    "scores": scores,
    "curves": curves,
    "memory": memory,
    "statistics": statistics,
    "epochs": epochs,
    "masks": masks,
    "adjacency": adjacency,
}
