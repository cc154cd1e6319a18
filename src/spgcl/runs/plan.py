"""A request to fit: checked and planned before the first file is written, then carried out."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from spgcl.engine.recording import initialising
from spgcl.errors import InputError, NoFeaturesError, note
from spgcl.evaluation.health import observer
from spgcl.files import locked
from spgcl.graph import Graph
from spgcl.graph.checks import checked_seed
from spgcl.io.embeddings import Format, has_embeddings
from spgcl.methods import Supervision, find, resolved_settings
from spgcl.runs.fit import describe_source, fit_run, open_folder
from spgcl.runs.folder import (
    CHECKPOINT,
    DERIVED_FILES,
    SCORED_FILES,
    holds_run,
    is_broken_run,
    named,
    put_in_place,
    remove_files,
    remove_run,
    replacement,
    require_replaceable,
    settle,
    tidy,
)
from spgcl.runs.options import DEFAULT_METHOD, GraphOptions
from spgcl.runs.record import Run, require_writable_text, to_json, write_run
from spgcl.runs.sources import HeldOut, Loaded, resolve, training_graph
from spgcl.scale.engines import Engine
from spgcl.scale.store import Store
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
        workers: Processes that train together.
        loaded: The graph, if it is given in memory; `graph` is its name.
    """

    graph: str
    device: torch.device
    options: GraphOptions = field(default_factory=GraphOptions)
    labels: Path | None = None
    out: Path | None = None
    method: str = DEFAULT_METHOD
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
    workers: int = 1
    loaded: Loaded | None = None


@dataclass(frozen=True, eq=False)
class Training:
    """One training of a plan: the folder and the record of its run, which may continue an earlier one.

    Attributes:
        work: Where it is trained: in the folder, or beside it if an earlier run stays there until the end.
    """

    folder: Path
    work: Path
    run: Run
    earlier: Run | None
    graph: Graph
    held_out: HeldOut | None

    @property
    def finished(self) -> Run | None:
        """The earlier run, if it left nothing to do: its weights and embeddings are there."""
        if self.earlier is None or self.earlier.status != "finished":
            return None
        there = has_embeddings(self.work, self.earlier.embedding_format)
        return self.earlier if there and (self.work / "model.safetensors").exists() else None


@dataclass(frozen=True, eq=False)
class Plan:
    """Every training of a request; nothing is written yet.

    Attributes:
        folder: The run's, or that of the retrainings.
        work: The folder, or its replacement, which takes its place when all trainings are finished.
    """

    request: Request
    loaded: Loaded
    folder: Path
    work: Path
    supervision: Supervision | None
    trainings: list[Training]


def plan(request: Request) -> Plan:
    """Read the graph and check everything that can be refused before training."""
    if request.resume and request.overwrite:
        raise InputError("--resume and --overwrite contradict each other; choose one")
    # Before the graph, which may take long to read.
    if request.seeds < 1:
        raise InputError(f"--retrainings {request.seeds}: train 1 time or more")
    checked_seed(request.seed + request.seeds - 1)
    asked = request.method, request.preset, request.graph, request.settings
    resolved_settings(*asked)
    request, loaded = _read(request)
    size = loaded.graph.num_nodes, loaded.graph.num_edges
    request = replace(request, settings=resolved_settings(*asked, size))
    supervision = _supervision(request.method, loaded)
    for remark in loaded.remarks:
        note(remark)
    folder = named(request.out or Path("runs") / f"{loaded.name}-{request.method}-{request.seed}")
    settle(folder)
    if request.seeds > 1 and (folder / "run.json").exists():
        raise InputError(f"{folder} holds a single run; choose another --out for {request.seeds} retrainings")
    planned = Plan(request, loaded, folder, folder, supervision, [])
    if request.resume and holds_run(replacement(folder)):
        try:
            return _filled(replace(planned, work=replacement(folder)))
        except InputError:
            if not holds_run(folder):
                raise
            planned = _filled(planned)
            note(f"another run, which was to replace that in {folder}, is not continued")
            return planned
    return _filled(planned)


def _filled(plan: Plan) -> Plan:
    """The plan with its trainings, every folder checked."""
    request, folder = plan.request, plan.folder
    trainings = [
        _training(plan, request.seed + index, f"seed-{request.seed + index}" if request.seeds > 1 else ".")
        for index in range(request.seeds)
    ]
    occupied = holds_run(folder) or (folder.is_dir() and is_broken_run(folder))
    if occupied and (request.overwrite or not holds_run(folder)):
        plan = replace(plan, work=replacement(folder))
        trainings = [replace(one, work=plan.work / one.folder.relative_to(folder)) for one in trainings]
    if plan.work != folder:
        require_replaceable(folder)
    return replace(plan, trainings=trainings)


def _training(plan: Plan, seed: int, inside: str) -> Training:
    request = plan.request
    folder, work = plan.folder / inside, plan.work / inside
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
        workers=request.workers,
        command=list(request.command),
        embedding_format=request.embedding_format,
        hold_out_edges=request.hold_out_edges,
        supervision=plan.supervision.record() if plan.supervision else None,
    )
    require_writable_text(run)
    earlier = open_folder(work, run, resume=request.resume, overwrite=request.overwrite)
    if earlier is not None and request.labels is None:
        _take_labels(run, earlier)
    return Training(folder, work, run, earlier, graph, held_out)


def carry_out(
    plan: Plan,
    *,
    watch: Watch,
    save_every: float = 60.0,
    observe_every: int = 0,
    engine: Engine | None = None,
) -> Iterator[tuple[Path, Run]]:
    """Train what is left to train, one run after the other; yields each folder with its finished record.

    Runs that replace others take their place together, after the last training.
    """
    observe = observer(plan.loaded.labels, positives=plan.request.settings.get("positives", 5))
    with ExitStack() as locks:
        for folder in dict.fromkeys([plan.folder, *(training.folder for training in plan.trainings)]):
            locks.enter_context(locked(folder))
        _require_unchanged(plan)
        _make_room(plan)
        if observe_every and not plan.trainings[0].run.trains:
            note(f"{plan.request.method} trains nothing: --observe {observe_every} records nothing")
        finished = True
        for training in plan.trainings:
            run = training.finished or _train(
                plan,
                training,
                watch,
                engine,
                save_every=save_every,
                observe=observe,
                observe_every=observe_every,
            )
            finished &= run.status == "finished"
            if training.finished:
                tidy(training.work)
            if plan.work != plan.folder and not finished:
                note(f"{plan.folder} keeps its earlier run until this one is finished")
            elif plan.work != plan.folder and training is plan.trainings[-1]:
                put_in_place(plan.folder)
            yield training.folder, run


def _train(plan: Plan, training: Training, watch: Watch, engine: Engine | None, **more: Any) -> Run:
    try:
        with watch(training.run) as controls:
            run = fit_run(
                training.work,
                training.graph,
                training.run,
                replace_earlier=training.earlier is None,
                supervision=plan.supervision,
                held_out=training.held_out,
                controls=replace(controls, **more),
                engine=engine,
            )
    except BaseException:
        # What cannot be continued only takes up space.
        if plan.work != plan.folder and not any(plan.work.rglob(CHECKPOINT)):
            remove_run(training.work)
        raise
    if training.folder != plan.folder == plan.work:
        remove_files(plan.folder, DERIVED_FILES)
    return run


def _require_unchanged(plan: Plan) -> None:
    """Refuse to go on if another process has changed a folder since the plan was made."""
    request = plan.request
    for training in plan.trainings:
        found = open_folder(training.work, training.run, resume=request.resume, overwrite=request.overwrite)
        before = training.earlier and to_json(asdict(training.earlier))
        if (found and to_json(asdict(found))) != before or (
            plan.work == plan.folder and training.earlier is None and holds_run(training.folder)
        ):
            raise InputError(f"{training.folder} was changed by another process; run the command again")


def _make_room(plan: Plan) -> None:
    """Begin a replacement anew, and remove scores by other labels than those given now."""
    if plan.work != plan.folder and not plan.request.resume:
        remove_run(plan.work)
    for training in plan.trainings:
        earlier = training.earlier
        if earlier and _labels_of(earlier) != _labels_of(training.run):
            _take_labels(earlier, training.run)
            write_run(training.work, earlier)
            for scored in {plan.work, training.work}:
                remove_files(scored, SCORED_FILES)


def _read(request: Request) -> tuple[Request, Loaded]:
    """The graph; features may be missing only if the method ignores them."""
    if request.loaded is not None:
        return request, request.loaded
    # cuBLAS reads the switch for determinism on first use, which has to come after it is set.
    with nullcontext() if request.deterministic else initialising(request.device):
        try:
            loaded = resolve(request.graph, request.options, request.labels, on_disk=True)
            return _checked_on_disk(request, loaded), loaded
        except NoFeaturesError:
            if find(request.method).reads_features:
                raise
            request = replace(request, options=replace(request.options, structural="degree"))
            return request, resolve(request.graph, request.options, request.labels)


def _checked_on_disk(request: Request, loaded: Loaded) -> Request:
    """What can be asked of a graph larger than memory: Parquet, the CPU, and no edges held out."""
    if not isinstance(loaded.graph, Store):
        return request
    for given, option in [
        (request.hold_out_edges, f"--hold-out-edges {request.hold_out_edges}"),
        (request.embedding_format != "parquet", f"--format {request.embedding_format}"),
        (find(request.method).supervised, f"--method {request.method}"),
    ]:
        if given:
            raise InputError(f"{request.graph} is larger than --memory; leave {option} out or raise --memory")
    note(f"{request.graph} is larger than --memory: it stays on disk, and pools of its rows are read")
    return replace(request, device=torch.device("cpu"))


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
