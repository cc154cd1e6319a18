import copy
import math
import time
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from graphs import CPU, make_graph
from made_methods import TINY_POOLS

from spgcl.engine.tensors import GraphTensors
from spgcl.errors import InputError
from spgcl.evaluation.health import observer
from spgcl.methods import create
from spgcl.methods.method import Method, Prepared
from spgcl.runs.record import load_checkpoint, save_checkpoint
from spgcl.training import loop
from spgcl.training.loop import draws, train

STEPS = 6
TINY = {**TINY_POOLS, "steps": STEPS, "learning_rate": 0.02, "batch_norm": "affine"}

GRAPH = make_graph(50, num_edges=100)
LABELS = np.random.default_rng(1).integers(0, 3, 50)


def fresh(**changes):
    method = create("spgcl", 6, seed=0, settings={**TINY, **changes})
    return method, method.prepare(GRAPH, CPU)


class Line(Method):
    """One weight whose loss is given step by step."""

    def __init__(self, losses, *, learning_rate=0.1):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(()))
        self.losses, self.steps = losses, len(losses)
        self.learning_rate, self.weight_decay = learning_rate, 0.0
        self.after: list[int] = []

    def prepare(self, graph, device, supervision=None):
        del supervision
        return Prepared(GraphTensors.of(graph, device))

    def loss(self, prepared, step, generator):
        del prepared, generator
        given = self.losses[step]
        return None if given is None else self.weight + given

    def after_step(self, step):
        self.after.append(step)

    def embed(self, prepared):
        return self.weight.detach().expand(prepared.graph.num_nodes, 1)


def line(*losses):
    method = Line(losses)
    return method, method.prepare(GRAPH, CPU)


@dataclass
class Kept:
    """Checkpoints as they were when they were given, as a file would keep them."""

    all: list = field(default_factory=list)

    def __call__(self, checkpoint):
        self.all.append(copy.deepcopy(checkpoint))


def state(method, prepared, history):
    """Everything a training leaves, in a form that compares bit by bit."""
    return {
        "weights": {name: value.numpy().tobytes() for name, value in method.state_dict().items()},
        "memory": {name: value.numpy().tobytes() for name, value in prepared.memory.items()},
        "losses": history.losses,
        "observations": history.observations,
        "embeddings": method.embed(prepared).numpy().tobytes(),
    }


OBSERVE = {"observe": observer(LABELS, positives=3), "observe_every": 2}


@pytest.mark.parametrize("before", [{}, OBSERVE], ids=["", "observed"])
@pytest.mark.parametrize("after", [{}, OBSERVE], ids=["", "then-observed"])
def test_resuming_after_any_step_changes_nothing(before, after, tmp_path):
    method, prepared = fresh()
    history = train(method, prepared, seed=5, **before)
    whole = state(method, prepared, history)
    assert history.finished and history.resumed_from is None and len(history.losses) == STEPS
    assert bool(prepared.memory) == bool(before)
    for stopped_after in range(1, STEPS):
        folder = tmp_path / str(stopped_after)
        folder.mkdir()
        method, prepared = fresh()
        calls = iter(range(1, STEPS + 1))
        train(
            method,
            prepared,
            seed=5,
            save=lambda checkpoint, folder=folder: save_checkpoint(folder, checkpoint),
            stop=lambda calls=calls, stopped_after=stopped_after: next(calls) == stopped_after,
            **before,
        )
        # Another process: fresh weights, a fresh graph, and nothing but the file.
        method, prepared = fresh()
        start = load_checkpoint(folder)
        assert start.step == stopped_after
        history = train(method, prepared, seed=5, start=start, **after)
        assert history.resumed_from == stopped_after and history.finished
        resumed = state(method, prepared, history)
        # Whether observations are made may change; it decides what is observed, and nothing else.
        compared = resumed if before == after else ("weights", "losses", "embeddings")
        assert {name: resumed[name] for name in compared} == {name: whole[name] for name in compared}


def test_resuming_a_finished_training_does_nothing():
    method, prepared = fresh()
    kept = Kept()
    train(method, prepared, seed=0, save=kept, save_every=0)
    start = kept.all[-1]
    assert start.step == STEPS - 1
    method, prepared = fresh(steps=STEPS - 1)
    history = train(method, prepared, seed=0, start=start, save=kept)
    assert history.finished and history.losses == start.losses and len(kept.all) == STEPS - 1
    for name, value in method.state_dict().items():
        assert torch.equal(value, start.weights[name])


def test_a_stopped_training_leaves_a_checkpoint_and_says_so():
    method, prepared = line(3.0, 2.0, 1.0, 0.0)
    kept, calls = Kept(), []

    def stop():
        calls.append(None)
        return len(calls) == 2

    history = train(method, prepared, seed=0, save=kept, save_every=1000, stop=stop)
    assert not history.finished and len(history.losses) == 2 and method.after == [0, 1]
    assert [checkpoint.step for checkpoint in kept.all] == [2]
    assert kept.all[0].losses == history.losses


def test_stopping_at_the_last_step_is_finishing():
    method, prepared = line(3.0, 2.0)
    history = train(method, prepared, seed=0, stop=lambda: len(method.after) == 2)
    assert history.finished and len(history.losses) == 2


@pytest.mark.parametrize(("every", "steps"), [(0.0, [1, 2, 3]), (1000.0, [])])
def test_checkpoints_come_every_so_many_seconds(every, steps):
    method, prepared = line(3.0, 2.0, 1.0, 0.0)
    kept = Kept()
    train(method, prepared, seed=0, save=kept, save_every=every)
    assert [checkpoint.step for checkpoint in kept.all] == steps


def test_the_clock_of_checkpoints_starts_again_after_each():
    class Slow(Line):
        def after_step(self, step):
            super().after_step(step)
            time.sleep(0.03)

    method = Slow([float(step) for step in range(10)])
    kept = Kept()
    train(method, method.prepare(GRAPH, CPU), seed=0, save=kept, save_every=0.07)
    # Steps last 0.03 s or more, so that no two steps in a row are followed by a checkpoint unless one stalls.
    assert 1 <= len(kept.all) < 9


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_loss_that_is_not_finite_stops_with_the_last_good_checkpoint(bad):
    method, prepared = line(3.0, 2.0, bad, 1.0)
    kept = Kept()
    with pytest.raises(InputError) as caught:
        train(method, prepared, seed=0, save=kept, save_every=0)
    message = str(caught.value)
    assert f"{bad} at step 3" in message and "learning_rate (now 0.1)" in message and "\n" not in message
    assert [checkpoint.step for checkpoint in kept.all] == [1, 2]
    assert kept.all[-1].is_finite() and all(map(math.isfinite, kept.all[-1].losses))


def test_a_checkpoint_knows_whether_its_weights_are_finite():
    method, prepared = line(3.0, 2.0)
    kept = Kept()
    train(method, prepared, seed=0, save=kept, save_every=0)
    assert kept.all[0].is_finite()
    kept.all[0].weights["weight"].fill_(math.nan)
    assert not kept.all[0].is_finite()


@pytest.mark.parametrize(
    ("every", "steps"), [(1, [0, 1, 2, 3, 4, 5]), (2, [0, 2, 4, 5]), (5, [0, 5]), (9, [0, 5]), (0, [])]
)
def test_observations_are_made_at_the_start_in_between_and_at_the_end(every, steps):
    method, prepared = line(5.0, 4.0, 3.0, 2.0, 1.0)
    seen = []

    def observe(given, what):
        assert given is method and what is prepared
        seen.append(float(method.weight.detach()))
        return {"weight": seen[-1]}

    history = train(method, prepared, seed=0, observe=observe, observe_every=every)
    assert [entry["step"] for entry in history.observations] == steps
    assert [entry["weight"] for entry in history.observations] == seen
    assert prepared.watching == (every > 0)
    # The first observation comes before the first update, and each update lowers the weight.
    assert seen == sorted(seen, reverse=True) and (not seen or seen[0] == 0)


def test_a_method_without_a_loss_trains_nothing():
    method, prepared = line(None, None)
    kept = Kept()
    history = train(method, prepared, seed=0, save=kept, save_every=0)
    assert history.finished and history.losses == [] and kept.all == []
    assert float(method.weight.detach()) == 0 and method.after == []


def test_progress_is_reported_at_the_end():
    method, prepared = line(3.0, 2.0, 1.5)
    reports = []
    history = train(method, prepared, seed=0, progress=lambda step, loss: reports.append((step, loss)))
    assert reports[-1] == (3, history.losses[-1]) and reports[0][0] == 0


def test_losses_are_those_of_the_method():
    method, prepared = line(3.0, 2.0, 1.0)
    history = train(method, prepared, seed=0)
    # Adam's first step against a constant gradient is the learning rate, and so are the next ones.
    assert history.losses == pytest.approx([3.0, 1.9, 0.8], abs=1e-5)
    assert method.after == [0, 1, 2] and float(method.weight.detach()) == pytest.approx(-0.3, abs=1e-5)


def test_every_step_has_the_rate_of_its_method():
    class Scheduled(Line):
        def learning_rate_at(self, step):
            return [0.5, 0.0, 0.25, 0.125][step]

    method = Scheduled([0.0] * 4)
    history = train(method, method.prepare(GRAPH, CPU), seed=0)
    assert history.losses == pytest.approx([0, -0.5, -0.5, -0.75], abs=1e-5)
    assert float(method.weight.detach()) == pytest.approx(-0.875, abs=1e-5)


def checks_and_reports(device, progress, monkeypatch):
    """After which steps of a slow training losses were checked, and progress reported; seconds it took."""

    class Slow(Line):
        def after_step(self, step):
            super().after_step(step)
            time.sleep(0.01)

    checks, reports = [], []
    check = loop._require_finite

    def counted(losses, done, method):
        checks.append(done)
        check(losses, done, method)

    monkeypatch.setattr(loop, "_require_finite", counted)
    method = Slow([0.0] * 60)
    started = time.monotonic()
    report = (lambda step, _: reports.append(step)) if progress else None
    train(method, method.prepare(GRAPH, device), seed=0, progress=report)
    return checks, reports, time.monotonic() - started


def test_progress_is_reported_a_few_times_per_second(monkeypatch):
    checks, reports, seconds = checks_and_reports(CPU, True, monkeypatch)
    began, *later = reports
    assert began == 0 and 2 <= len(later) <= seconds / 0.2 + 1 and later[-1] == 60
    # On the CPU reading a loss waits for nothing.
    assert checks == list(range(1, 61))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
@pytest.mark.parametrize("progress", [False, True], ids=["silent", "with-progress"])
def test_an_accelerator_is_waited_for_a_few_times_per_second(progress, monkeypatch):
    checks, reports, seconds = checks_and_reports(torch.device("cuda"), progress, monkeypatch)
    assert 2 <= len(checks) <= seconds / 0.2 + 1 and checks[-1] == 60
    assert reports == ([0, *checks] if progress else [])


def test_draws_are_decided_by_the_seed_and_apart_from_the_weights():
    def numbers(generator):
        return torch.rand(4, generator=generator).tolist()

    assert numbers(draws(3, CPU)) == numbers(draws(3, CPU)) != numbers(draws(4, CPU))
    assert numbers(draws(3, CPU)) != numbers(torch.Generator().manual_seed(3))
