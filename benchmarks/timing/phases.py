"""Time by phase of this package, of the reference and of other methods, interleaved in one process."""

import gc
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import torch

from spgcl.datasets import Dataset
from spgcl.errors import InputError
from spgcl.evaluation import probe
from spgcl.io import write_embeddings
from spgcl.methods import Method, create
from spgcl.training.loop import train
from timing import reference
from timing.graphs import synthetic
from timing.products import Precision, multiplying, precisions
from timing.reference_probe import probe as reference_probe
from timing.stopwatch import StepTimer, Stopwatch

# Other methods are there to show what a step costs.
STEP_PHASES = ("prepare", "start", "step")
PHASES = ("load", "prepare", "start", "step", "embed", "probe", "write")
SEED = 0


@dataclass
class Subject:
    """Something that is timed, round by round.

    Attributes:
        name: "reference", or the name of a method.
        settings: Its hyper-parameters.
        phases: Which phases are timed; those after `step` that are not asked for are not run.
        timer: How its steps are timed.
        rounds: Seconds by phase, one list entry a round.
    """

    name: str
    settings: Mapping[str, Any]
    phases: Sequence[str] = PHASES
    timer: StepTimer = field(default_factory=StepTimer)
    rounds: dict[str, list[float]] = field(default_factory=dict)

    def measure(self, load: Callable[[], Dataset], device: torch.device, probe_epochs: int) -> None:
        """Time one round."""
        # A round must not pay for the garbage of the one before.
        gc.collect()
        watch = Stopwatch(device)
        measure = _measure_reference if self.name == "reference" else _measure_method
        with tempfile.TemporaryDirectory() as folder:
            measure(self, watch, load, probe_epochs, Path(folder))
        for phase in self.phases:
            self.rounds.setdefault(phase, []).append(watch.seconds[phase])

    def medians(self) -> dict[str, float]:
        """Median seconds by phase."""
        return {phase: median(values) for phase, values in self.rounds.items()}

    def as_record(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "settings": dict(self.settings),
            "timed_steps": self.timer.count,
            "seconds": self.medians(),
            "rounds": self.rounds,
        }


def compare(
    subjects: Sequence[Subject],
    load: Callable[[], Dataset],
    device: torch.device,
    *,
    rounds: int = 5,
    probe_epochs: int = 1000,
    precision: Precision = "float32",
    progress: Callable[[int, str], None] | None = None,
) -> None:
    """Time all subjects in turn, `rounds` times, so that a machine's moods meet all of them alike.

    Args:
        subjects: What is timed; their rounds are filled in.
        load: Loads the data set.
        device: Where to compute.
        rounds: How many.
        probe_epochs: Epochs of every probe.
        precision: How all subjects multiply matrices: "tf32" rounds factors, on CUDA only.
        progress: Called with the round and the subject's name before each.
    """
    if precision not in precisions(device):
        raise InputError(f"{device.type} has no {precision} products; leave --precision out")
    with multiplying(precision):
        for subject in subjects:
            warm_up(subject, device)
        for number in range(rounds):
            for subject in subjects:
                if progress:
                    progress(number, subject.name)
                subject.measure(load, device, probe_epochs)


def ratios(ours: Mapping[str, float], theirs: Mapping[str, float]) -> dict[str, float]:
    """How many times longer the other takes, by phase; a phase too short to be seen is left out."""
    return {
        phase: theirs[phase] / ours[phase]
        for phase in PHASES
        if theirs.get(phase, 0) > 0 and ours.get(phase, 0) > 0
    }


def warm_up(subject: Subject, device: torch.device) -> None:
    """Go through all phases on a small graph, so that imports and first calls are nobody's time."""
    small = {"hidden": 8} if "hidden" in subject.settings else {}
    rehearsal = Subject(subject.name, {**subject.settings, **small}, subject.phases, StepTimer(seconds=0))
    rehearsal.measure(lambda: synthetic(400, 10.0, 8, "rehearsal"), device, probe_epochs=2)


def _measure_method(
    subject: Subject, watch: Stopwatch, load: Callable[[], Dataset], probe_epochs: int, folder: Path
) -> None:
    device = watch.device
    with watch.phase("load"):
        dataset = load()
    graph = dataset.graph

    def fresh() -> Method:
        made = create(
            subject.name,
            graph.num_features,
            num_nodes=graph.num_nodes,
            seed=SEED,
            settings=subject.settings,
        )
        return made.to(device)

    with watch.phase("prepare"):
        method = fresh()
        prepared = method.prepare(graph, device)

    def training(steps: int) -> Callable[[], object]:
        nonlocal method
        method = fresh()
        method.steps = steps
        return lambda: train(method, prepared, seed=SEED)

    subject.timer.measure(watch, training)
    if "embed" not in subject.phases:
        return
    with watch.phase("embed"):
        embeddings = method.embed(prepared).cpu().numpy()
    if "probe" not in subject.phases:
        return
    with watch.phase("probe"):
        probe(
            embeddings,
            dataset.labels,
            dataset.splits,
            metric=dataset.metric,
            epochs=probe_epochs,
            device=device,
        )
    with watch.phase("write"):
        write_embeddings(folder, embeddings, graph.node_ids)


def _measure_reference(
    subject: Subject, watch: Stopwatch, load: Callable[[], Dataset], probe_epochs: int, folder: Path
) -> None:
    device = watch.device
    with watch.phase("load"):
        dataset = load()
        data = reference.load(dataset)

    def fresh() -> reference.Reference:
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(SEED)
            return reference.Reference(data.num_features, subject.settings).to(device)

    with watch.phase("prepare"):
        model = fresh()
        prepared = reference.prepare(data, subject.settings, device)

    def training(steps: int) -> Callable[[], object]:
        nonlocal model
        model = fresh()
        return lambda: reference.train(model, prepared, steps, SEED)

    subject.timer.measure(watch, training)
    with watch.phase("embed"):
        embeddings = reference.embed(model, prepared)
    with watch.phase("probe"):
        reference_probe(
            embeddings,
            dataset.labels,
            dataset.splits,
            metric=dataset.metric,
            epochs=probe_epochs,
            device=device,
        )
    with watch.phase("write"):
        reference.write(folder / "embeddings.parquet", embeddings, dataset.graph.node_ids)
