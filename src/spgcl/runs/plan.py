"""A request to fit: checked and planned before the first file is written, then carried out."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from spgcl.engine.recording import initialising
from spgcl.errors import InputError, NoFeaturesError, note
from spgcl.evaluation.health import observer
from spgcl.graph import Graph
from spgcl.graph.checks import checked_seed
from spgcl.io.embeddings import Format
from spgcl.methods import Supervision, find, resolved_settings
from spgcl.runs.fit import (
    DERIVED_FILES,
    SCORED_FILES,
    describe_source,
    fit_run,
    open_folder,
    remove_files,
    remove_run,
    tidy,
)
from spgcl.runs.options import GraphOptions
from spgcl.runs.record import Run, write_run
from spgcl.runs.sources import HeldOut, Loaded, resolve, training_graph
from spgcl.training.loop import Controls

# A context around one training; gives progress and stop for its controls.
Watch = Callable[[Run], AbstractContextManager[Controls]]


@dataclass(frozen=True)
class Request:
    """What a user asks of `fit`.

    Attributes:
        graph: A data set's name, or a path.
        labels: A file of labels, or None.
        out: The run's folder; `runs/GRAPH-METHOD-SEED` if None.
        settings: Hyper-parameters as given.
        seed: Seed of the first training.
        seeds: How many trainings; several have one folder each.
        hold_out_edges: Fraction of edges kept from training for link prediction.
        resume: Continue earlier runs in these folders.
        overwrite: Replace them.
        command: The command line, for the record.
    """

    graph: str
    device: torch.device
    options: GraphOptions = field(default_factory=GraphOptions)
    labels: Path | None = None
    out: Path | None = None
    method: str = "spgcl"
    preset: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    seed: int = 0
    seeds: int = 1
    embedding_format: Format = "parquet"
    hold_out_edges: float = 0.0
    precision: str = "auto"
    deterministic: bool = False
    resume: bool = False
    overwrite: bool = False
    command: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Training:
    """One training of a plan: the folder and the record of its run, which may continue an earlier one."""

    folder: Path
    run: Run
    earlier: Run | None
    graph: Graph
    held_out: HeldOut | None

    @property
    def finished(self) -> Run | None:
        """The earlier run, if it left nothing to do: its weights and embeddings are there."""
        if self.earlier is None or self.earlier.status != "finished":
            return None
        files = ("model.safetensors", f"embeddings.{self.earlier.embedding_format}")
        return self.earlier if all((self.folder / name).exists() for name in files) else None


@dataclass(frozen=True, eq=False)
class Plan:
    """Every training of a request; nothing is written yet."""

    request: Request
    loaded: Loaded
    folder: Path
    supervision: Supervision | None
    trainings: list[Training]


def plan(request: Request) -> Plan:
    """Read the graph and check everything that can be refused before training."""
    if request.resume and request.overwrite:
        raise InputError("--resume and --overwrite contradict each other; choose one")
    # Before the graph, which may take long to read.
    checked_seed(request.seed + request.seeds - 1)
    settings = resolved_settings(request.method, request.preset, request.graph, request.settings)
    request, loaded = _read(replace(request, settings=settings))
    supervision = _supervision(request.method, loaded)
    for remark in loaded.graph.notes:
        note(remark)
    folder = request.out or Path("runs") / f"{loaded.name}-{request.method}-{request.seed}"
    if request.seeds > 1 and (folder / "run.json").exists():
        raise InputError(f"{folder} holds a single run; choose another --out for {request.seeds} retrainings")
    planned = Plan(request, loaded, folder, supervision, [])
    for seed in range(request.seed, request.seed + request.seeds):
        planned.trainings.append(_training(planned, seed))
    return planned


def _training(plan: Plan, seed: int) -> Training:
    request, folder = plan.request, plan.folder
    if request.seeds > 1:
        folder = folder / f"seed-{seed}"
    options = request.options.given()
    graph, held_out = training_graph(plan.loaded.graph, options, request.hold_out_edges, seed)
    run = Run(
        dataset=plan.loaded.name,
        method=request.method,
        preset=request.preset,
        settings=request.settings,
        seed=seed,
        graph=describe_source(plan.loaded.source, options, request.labels, graph),
        device=str(request.device),
        threads=torch.get_num_threads(),
        precision=request.precision,
        deterministic=request.deterministic,
        command=list(request.command),
        embedding_format=request.embedding_format,
        hold_out_edges=request.hold_out_edges,
        supervision=plan.supervision.record() if plan.supervision else None,
    )
    earlier = open_folder(folder, run, resume=request.resume, overwrite=request.overwrite)
    if earlier is not None and request.labels is None:
        _take_labels(run, earlier)
    return Training(folder, run, earlier, graph, held_out)


def carry_out(
    plan: Plan, *, watch: Watch, save_every: float = 60.0, observe_every: int = 0
) -> Iterator[tuple[Path, Run]]:
    """Train what is left to train, one run after the other; yields each folder with its finished record."""
    _make_room(plan)
    observe = observer(plan.loaded.labels, positives=plan.request.settings.get("positives", 5))
    for training in plan.trainings:
        if training.finished:
            tidy(training.folder)
            yield training.folder, training.finished
            continue
        with watch(training.run) as controls:
            run = fit_run(
                training.folder,
                training.graph,
                training.run,
                replace_earlier=training.earlier is None,
                supervision=plan.supervision,
                held_out=training.held_out,
                controls=replace(
                    controls, save_every=save_every, observe=observe, observe_every=observe_every
                ),
            )
        yield training.folder, run


def _make_room(plan: Plan) -> None:
    """Remove what the trainings of a plan make obsolete."""
    several = plan.request.seeds > 1
    if plan.request.overwrite and several:
        for leftover in set(plan.folder.glob("seed-*")) - {training.folder for training in plan.trainings}:
            remove_run(leftover)
    if several and not all(training.finished for training in plan.trainings):
        remove_files(plan.folder, DERIVED_FILES)
    for training in plan.trainings:
        earlier = training.earlier
        if earlier and _labels_of(earlier) != _labels_of(training.run):
            _take_labels(earlier, training.run)
            for scored in {plan.folder, training.folder}:
                remove_files(scored, SCORED_FILES)
            write_run(training.folder, earlier)


def _read(request: Request) -> tuple[Request, Loaded]:
    """The graph; features may be missing only if the method ignores them."""
    # cuBLAS reads the switch for determinism when it is first used: not yet.
    with nullcontext() if request.deterministic else initialising(request.device):
        try:
            return request, resolve(request.graph, request.options, request.labels)
        except NoFeaturesError:
            if find(request.method).reads_features:
                raise
            request = replace(request, options=replace(request.options, structural="degree"))
            return request, resolve(request.graph, request.options, request.labels)


def _labels_of(run: Run) -> tuple[str | None, str | None]:
    """The file of labels, and the column of node ids in it."""
    return run.graph["labels"], run.graph["options"].get("id")


def _take_labels(run: Run, other: Run) -> None:
    """Record the labels of another run."""
    run.graph["labels"], column = _labels_of(other)
    options = {name: value for name, value in run.graph["options"].items() if name != "id"}
    run.graph["options"] = {**options, "id": column} if column else options


def _supervision(method: str, loaded: Loaded) -> Supervision | None:
    if not find(method).supervised:
        return None
    if loaded.labels is None or loaded.splits is None:
        raise InputError(
            f"{method} is supervised and {loaded.source} has no labels; give them by --labels FILE"
        )
    supervision = Supervision.of(loaded.labels, loaded.splits)
    note(
        f"{method} is supervised: {supervision.task[0]} models are trained on labels; the embeddings are "
        "their class scores, side by side, and spgcl eval scores each model on its own split"
    )
    return supervision
