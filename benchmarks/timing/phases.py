"""Time per phase of this package, of the reference and of other methods, interleaved in one process."""

import gc
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from spgcl.datasets import Dataset
from spgcl.engine.device import arithmetic
from spgcl.errors import InputError
from spgcl.evaluation import probe
from spgcl.io import write_embeddings
from spgcl.methods import Method, create
from spgcl.training.loop import train
from timing import reference
from timing.floor import precisions
from timing.graphs import synthetic
from timing.reference_probe import probe as reference_probe
from timing.stopwatch import StepTimer, Stopwatch

# Other methods show what a step costs.
STEP_PHASES = ("prepare", "start", "step")
PHASES = ("load", "prepare", "start", "step", "embed", "probe", "write")
SEED = 0


@dataclass
class Subject:
    """Something that is timed, round by round.

    Attributes:
        name: "reference", or the name of a method.
        settings: Its hyper-parameters.
        phases: Which phases are timed; those after `step` that are left out are not run.
        timer: How its steps are timed.
        rounds: Seconds by phase, one list entry per round.
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
        measure = _train_reference if self.name == "reference" else _train_method
        dataset, trained = measure(self, watch, load)
        self._measure_results(watch, dataset, trained, probe_epochs)
        for phase in self.phases:
            self.rounds.setdefault(phase, []).append(watch.seconds[phase])

    def _measure_results(
        self, watch: Stopwatch, dataset: Dataset, trained: "_Trained", probe_epochs: int
    ) -> None:
        if "embed" not in self.phases:
            return
        with watch.phase("embed"):
            embeddings = trained.embed()
        if "probe" not in self.phases:
            return
        task = (embeddings, dataset.labels, dataset.splits)
        with watch.phase("probe"):
            trained.probe(*task, metric=dataset.metric, epochs=probe_epochs, device=watch.device)
        with tempfile.TemporaryDirectory() as folder, watch.phase("write"):
            trained.write(Path(folder), embeddings, dataset.graph.node_ids)

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


@dataclass(frozen=True)
class _Trained:
    """What is timed after training."""

    embed: Callable[[], NDArray[np.float32]]
    probe: Callable[..., object]
    write: Callable[[Path, NDArray[np.float32], NDArray[Any]], object]


def compare(
    subjects: Sequence[Subject],
    load: Callable[[], Dataset],
    device: torch.device,
    *,
    rounds: int = 5,
    probe_epochs: int = 1000,
    precision: str = "float32",
    progress: Callable[[int, str], None] | None = None,
) -> None:
    """Time all subjects in turn, `rounds` times, so that changes of the machine affect all of them alike.

    Args:
        subjects: What is timed; their rounds are filled in.
        load: Loads the data set.
        device: Where to compute.
        rounds: How many.
        probe_epochs: Epochs of every probe.
        precision: Number format of everyone's matrix products: "float32", or "tf32" on CUDA.
        progress: Called with the round and the subject's name before each.
    """
    if precision not in precisions(device):
        raise InputError(f"{device.type} has no {precision} products; leave --precision out")
    with arithmetic(device, precision):
        for subject in subjects:
            warm_up(subject, device)
        for number in range(rounds):
            for subject in subjects:
                if progress:
                    progress(number, subject.name)
                subject.measure(load, device, probe_epochs)


def ratios(ours: Mapping[str, float], theirs: Mapping[str, float]) -> dict[str, float]:
    """How many times longer the other takes, by phase; a phase too short to be measured is left out."""
    return {
        phase: theirs[phase] / ours[phase]
        for phase in PHASES
        if theirs.get(phase, 0) > 0 and ours.get(phase, 0) > 0
    }


def warm_up(subject: Subject, device: torch.device) -> None:
    """Run all phases on a small graph, so that imports and first calls are in no phase."""
    small = {"hidden": 8} if "hidden" in subject.settings else {}
    rehearsal = Subject(subject.name, {**subject.settings, **small}, subject.phases, StepTimer(seconds=0))
    rehearsal.measure(lambda: synthetic(400, 10.0, 8, "rehearsal"), device, probe_epochs=2)


def _train_method(
    subject: Subject, watch: Stopwatch, load: Callable[[], Dataset]
) -> tuple[Dataset, _Trained]:
    with watch.phase("load"):
        dataset = load()
    graph = dataset.graph

    def fresh() -> Method:
        width = graph.num_features
        made = create(subject.name, width, num_nodes=graph.num_nodes, seed=SEED, settings=subject.settings)
        return made.to(watch.device)

    with watch.phase("prepare"):
        method = fresh()
        prepared = method.prepare(graph, watch.device)

    def training(steps: int) -> Callable[[], object]:
        nonlocal method
        method = fresh()
        method.steps = steps
        return lambda: train(method, prepared, seed=SEED)

    subject.timer.measure(watch, training)
    return dataset, _Trained(lambda: method.embed(prepared).cpu().numpy(), probe, write_embeddings)


def _train_reference(
    subject: Subject, watch: Stopwatch, load: Callable[[], Dataset]
) -> tuple[Dataset, _Trained]:
    with watch.phase("load"):
        dataset = load()
        data = reference.load(dataset)

    def fresh() -> reference.Reference:
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(SEED)
            return reference.Reference(data.num_features, subject.settings).to(watch.device)

    with watch.phase("prepare"):
        model = fresh()
        prepared = reference.prepare(data, subject.settings, watch.device)

    def training(steps: int) -> Callable[[], object]:
        nonlocal model
        model = fresh()
        return lambda: reference.train(model, prepared, steps, SEED)

    subject.timer.measure(watch, training)

    def write(folder: Path, embeddings: NDArray[np.float32], node_ids: NDArray[Any]) -> None:
        reference.write(folder / "embeddings.parquet", embeddings, node_ids)

    return dataset, _Trained(lambda: reference.embed(model, prepared), reference_probe, write)
