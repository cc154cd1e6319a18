"""One training as a job: for the process that leads, and for others that train together with it."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from spgcl.errors import Note
from spgcl.graph import Graph
from spgcl.methods import Method, Prepared, Supervision, find
from spgcl.runs.options import GraphOptions
from spgcl.runs.record import Run
from spgcl.runs.sources import memory_of, resolve_recorded, training_graph
from spgcl.scale import fit as stored
from spgcl.scale.derived import Here, Workers
from spgcl.scale.engines import Engine
from spgcl.scale.ranks import Ranks
from spgcl.scale.store import Store
from spgcl.training.fitting import Fitted, fit
from spgcl.training.loop import Controls
from spgcl.training.step import Checkpoint


@dataclass(frozen=True)
class Job:
    """A training that is to begin, from a checkpoint if there is one."""

    run: Run
    start: Checkpoint | None

    def fitted(
        self, graph: Graph, supervision: Supervision | None, controls: Controls, engine: Engine
    ) -> Fitted:
        """Train, as the process that leads."""

        def prepare(method: Method) -> Prepared:
            engine.begin(self, prepared=False)
            prepared = self._prepared(method, graph, supervision, engine.workers)
            engine.begin(self, prepared=True)
            return prepared

        return self._fit(graph, supervision, controls, prepare)

    def follow(self, ranks: Ranks, workers: Workers) -> tuple[Graph, Method]:
        """Train together with the process that leads; nothing is written."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Note)
            torch.set_num_threads(self.run.threads)
            # Only files train together: a graph in memory is not on disk yet.
            loaded = resolve_recorded(Path(), self.run.graph)
            options = self.run.graph["options"]
            graph, _ = training_graph(loaded.graph, options, self.run.hold_out_edges, self.run.seed)
            supervision = None
            if find(self.run.method).supervised and loaded.labels is not None and loaded.splits is not None:
                supervision = Supervision.of(loaded.labels, loaded.splits)
            controls = Controls(save=lambda _: None, group=lambda: ranks)
            fitted = self._fit(
                graph,
                supervision,
                controls,
                lambda method: self._prepared(method, graph, supervision, workers),
            )
            return graph, fitted.method

    def _prepared(
        self, method: Method, graph: Graph, supervision: Supervision | None, workers: Workers
    ) -> Prepared:
        if isinstance(graph, Store):
            memory = memory_of(GraphOptions.recorded(self.run.graph["options"]))
            return stored.prepare(graph, method, memory=memory, workers=workers)
        prepared: Prepared = method.prepare(graph, torch.device(self.run.device), supervision)
        return prepared

    def _fit(
        self,
        graph: Graph,
        supervision: Supervision | None,
        controls: Controls,
        prepare: Callable[[Method], Prepared],
    ) -> Fitted:
        run = self.run
        return fit(
            run.method,
            graph,
            settings=run.settings,
            seed=run.seed,
            device=torch.device(run.device),
            supervision=supervision,
            precision=run.precision,
            deterministic=run.deterministic,
            controls=replace(controls, start=self.start, save_last=isinstance(graph, Store)),
            prepare=prepare,
        )


def follow(ranks: Ranks, job: Job) -> None:
    """Train together with the process that leads; it has prepared the graph."""
    job.follow(ranks, Here(leads=False))


def follow_all(ranks: Ranks) -> None:
    """Follow the process that leads from job to job, dividing blocks with it too."""
    while (job := ranks.share(None)) is not None:
        graph, method = job.follow(ranks, ranks)
        if isinstance(graph, Store):
            folder: Path = ranks.share(None)
            stored.embed(graph, method, folder, workers=ranks)
