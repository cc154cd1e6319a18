"""What `fit` is asked for, checked and laid out before the first file is written, then carried out."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from spgcl.engine.recording import initialising
from spgcl.errors import InputError, NoFeaturesError, note
from spgcl.evaluation.health import observer
from spgcl.graph import Graph
from spgcl.io.embeddings import Format
from spgcl.methods import Supervision, find, resolved_settings
from spgcl.methods.presets import require_preset
from spgcl.runs.fit import (
    describe_source,
    drop_derived,
    drop_scores,
    fit_run,
    is_whole,
    open_folder,
    remove_run,
    tidy,
)
from spgcl.runs.options import GraphOptions
from spgcl.runs.record import Run, write_run
from spgcl.runs.sources import Loaded, resolve, training_graph
from spgcl.training.loop import Controls

# Opened around one training: progress and stop for its controls.
Watch = Callable[[Run], AbstractContextManager[Controls]]


@dataclass(frozen=True)
class Request:
    """What a user asks `fit` for.

    Attributes:
        graph: A data set's name, or a path.
        device: Where to compute.
        options: How the graph's files are read.
        labels: A file of labels, or None.
        out: The run's folder; `runs/GRAPH-METHOD-SEED` if None.
        method: One of METHODS.
        preset: Named settings for a data set.
        settings: Hyper-parameters as given.
        seed: Of the first training.
        seeds: How many trainings, one folder each if there are several.
        embedding_format: Of the file of embeddings.
        hold_out_edges: Fraction of edges kept from training for link prediction.
        precision: See `spgcl.engine.device.arithmetic`.
        deterministic: See `spgcl.engine.device.arithmetic`.
        resume: Continue earlier runs in these folders.
        overwrite: Replace them.
        command: For the record.
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
    """One training of a plan: its folder, its record, the earlier record it continues, and its graph."""

    folder: Path
    run: Run
    earlier: Run | None
    graph: Graph
    held_out: tuple[NDArray[np.int64], NDArray[np.int64]] | None

    @property
    def is_done(self) -> bool:
        """Whether an earlier run left nothing to do."""
        return self.earlier is not None and is_whole(self.folder, self.earlier)


@dataclass(frozen=True, eq=False)
class Plan:
    """Every training that a request stands for; nothing is written yet."""

    request: Request
    loaded: Loaded
    folder: Path
    settings: dict[str, Any]
    supervision: Supervision | None
    trainings: list[Training]
    relabelled: list[Training]


def plan(request: Request) -> Plan:
    """Read the graph and check everything that can be refused before training."""
    if request.resume and request.overwrite:
        raise InputError("--resume and --overwrite contradict each other; choose one")
    # Misspelt names are refused before a graph is read.
    resolved_settings(request.method, None, "", request.settings)
    if request.preset:
        require_preset(request.preset, request.method)
    request, loaded = _read(request)
    settings = resolved_settings(request.method, request.preset, loaded.preset_name, request.settings)
    supervision = _supervision(request.method, loaded)
    for remark in loaded.graph.notes:
        note(remark)
    folder = request.out or Path("runs") / f"{loaded.name}-{request.method}-{request.seed}"
    if request.seeds > 1 and (folder / "run.json").exists():
        raise InputError(f"{folder} holds a single run; choose another --out for {request.seeds} retrainings")
    trainings, relabelled = [], []
    for seed in range(request.seed, request.seed + request.seeds):
        place = folder if request.seeds == 1 else folder / f"seed-{seed}"
        graph, *held_out = training_graph(loaded.graph, request.options.given(), request.hold_out_edges, seed)
        run = _record(request, loaded, graph, settings, supervision, seed)
        earlier = open_folder(place, run, resume=request.resume, overwrite=request.overwrite)
        training = Training(place, run, earlier, graph, (held_out[0], held_out[1]) if held_out else None)
        trainings.append(training)
        if earlier is not None and _share_labels(earlier, run, given=request.labels is not None):
            relabelled.append(training)
    return Plan(request, loaded, folder, settings, supervision, trainings, relabelled)


def carry_out(
    plan: Plan, *, watch: Watch, save_every: float = 60.0, observe_every: int = 0
) -> Iterator[tuple[Path, Run]]:
    """Train what is left to train, one run after the other; gives each folder with its finished record."""
    _make_room(plan)
    observe = observer(plan.loaded.labels, positives=plan.settings.get("positives", 5))
    for training in plan.trainings:
        if training.is_done and training.earlier is not None:
            tidy(training.folder)
            yield training.folder, training.earlier
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
    if several and not all(training.is_done for training in plan.trainings):
        drop_derived(plan.folder)
    for training in plan.relabelled:
        for scored in {plan.folder, training.folder}:
            drop_scores(scored)
        if training.earlier is not None:
            write_run(training.folder, training.earlier)


def _read(request: Request) -> tuple[Request, Loaded]:
    """The graph; one without features only for a method that needs none."""
    # The library reads the switch for determinism when it is first used: not yet.
    with nullcontext() if request.deterministic else initialising(request.device):
        try:
            return request, resolve(request.graph, request.options, request.labels)
        except NoFeaturesError:
            if find(request.method).reads_features:
                raise
            request = replace(request, options=replace(request.options, structural="degree"))
            return request, resolve(request.graph, request.options, request.labels)


def _record(
    request: Request,
    loaded: Loaded,
    graph: Graph,
    settings: dict[str, Any],
    supervision: Supervision | None,
    seed: int,
) -> Run:
    return Run(
        dataset=loaded.name,
        method=request.method,
        preset=request.preset,
        settings=settings,
        seed=seed,
        graph=describe_source(loaded.source, request.options.given(), request.labels, graph),
        device=str(request.device),
        threads=torch.get_num_threads(),
        precision=request.precision,
        deterministic=request.deterministic,
        command=list(request.command),
        embedding_format=request.embedding_format,
        hold_out_edges=request.hold_out_edges,
        supervision=supervision.record() if supervision else None,
    )


def _share_labels(earlier: Run, run: Run, *, given: bool) -> bool:
    """Let a resumed run have its earlier labels unless others are given; whether its record changed."""
    newer, older = (run, earlier) if given else (earlier, run)
    (labels, column), before = _labels_of(newer), _labels_of(older)
    older.graph["labels"] = labels
    others = {name: value for name, value in older.graph["options"].items() if name != "id"}
    older.graph["options"] = {**others, "id": column} if column else others
    return given and before != (labels, column)


def _labels_of(run: Run) -> tuple[str | None, str | None]:
    """The file of labels, and the column of node ids in it."""
    return run.graph["labels"], run.graph["options"].get("id")


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
