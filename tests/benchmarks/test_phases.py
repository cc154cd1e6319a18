"""What is timed and how it is summarised; no test asks how long anything took."""

import math

import pytest
from graphs import CPU
from timing import stopwatch
from timing.phases import PHASES, STEP_PHASES, Subject, compare, ratios
from timing.scale import growth
from timing.speed import plan_subjects
from timing.stopwatch import StepTimer, Stopwatch

from spgcl.errors import InputError
from spgcl.methods import resolved_settings


class Clock:
    """A clock that work advances."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr(stopwatch.time, "perf_counter", lambda: self.now)

    def training(self, *, first, once, step):
        """Trainings of which the first takes `first` more than the others' `once`."""
        done = []

        def make(steps):
            def work():
                self.now += (once if done else once + first) + step * steps
                done.append(steps)

            return work

        return make, done


def test_a_step_is_the_difference_of_two_trainings(monkeypatch):
    watch, timer = Stopwatch(CPU), StepTimer(seconds=0.0)
    make, done = Clock(monkeypatch).training(first=5.0, once=0.5, step=2.0)
    timer.measure(watch, make)

    assert done == [1, 1, 3]
    assert watch.seconds == pytest.approx({"step": 2.0, "start": 5.5})


def test_more_steps_are_timed_until_they_take_long_enough(monkeypatch):
    watch, timer = Stopwatch(CPU), StepTimer(seconds=1.0)
    make, done = Clock(monkeypatch).training(first=0.0, once=0.5, step=0.01)
    timer.measure(watch, make)

    assert (done[-1] - 1) * 0.01 >= 1.0
    assert watch.seconds["step"] == pytest.approx(0.01)
    count = timer.count
    timer.measure(watch, make)
    assert done[-3:] == [1, 1, 1 + count]


def test_steps_that_take_no_time_end_the_search(monkeypatch):
    watch, timer = Stopwatch(CPU), StepTimer(seconds=1.0)
    make, _ = Clock(monkeypatch).training(first=0.0, once=0.0, step=0.0)
    timer.measure(watch, make)

    assert timer.count == stopwatch.MOST
    assert watch.seconds == {"step": 0.0, "start": 0.0}


def test_all_subjects_are_timed_in_turn(tiny, tiny_settings):
    settings = tiny_settings()
    bgrl = resolved_settings("bgrl", None, "", {"hidden": 4, "steps": 2})
    # Any difference will do, also one below zero, which a busy machine makes of few steps.
    any_time = -math.inf
    subjects = [
        Subject("spgcl", settings, timer=StepTimer(any_time)),
        Subject("reference", settings, timer=StepTimer(any_time)),
        Subject("bgrl", bgrl, STEP_PHASES, timer=StepTimer(any_time)),
    ]
    turns = []
    compare(
        subjects,
        lambda: tiny,
        CPU,
        rounds=2,
        probe_epochs=2,
        progress=lambda number, name: turns.append((number, name)),
    )

    names = [subject.name for subject in subjects]
    assert turns == [(number, name) for number in range(2) for name in names]
    for subject in subjects:
        phases = STEP_PHASES if subject.name == "bgrl" else PHASES
        record = subject.as_record()
        assert tuple(record["seconds"]) == tuple(record["rounds"]) == phases
        assert {len(values) for values in record["rounds"].values()} == {2}
        assert record["timed_steps"] == 2


def test_medians_are_over_rounds():
    subject = Subject("spgcl", {}, rounds={"step": [3.0, 1.0, 10.0], "load": [2.0, 4.0]})

    assert subject.medians() == {"step": 3.0, "load": 3.0}


def test_a_ratio_says_how_many_times_longer_the_other_takes():
    ours = {"load": 2.0, "step": 0.5, "start": 0.0, "embed": 1.0}
    theirs = {"load": 3.0, "step": 5.0, "start": 1.0, "probe": 1.0}

    assert ratios(ours, theirs) == {"load": 1.5, "step": 10.0}


def test_growth_compares_the_largest_with_the_smallest():
    sizes = [
        {
            "num_nodes": nodes,
            "num_edges": 3 * nodes,
            "seconds": {"prepare": prepare, "step": step, "embed": embed},
            "random_row_seconds": row,
        }
        for nodes, prepare, step, embed, row in [
            (10, 1.0, 2.0, 0.0, 2.0),
            (50, 9.0, 9.0, 9.0, 9.0),
            (100, 11.0, 2.5, 3.0, 9.0),
        ]
    ]

    assert growth(sizes) == {"nodes_and_edges": 10.0, "prepare": 11.0, "step": 1.25, "random_row": 4.5}


def test_subjects_take_the_published_settings_and_what_they_know_of_those_given():
    subjects = plan_subjects("cora", ["spgcl", "bgrl"], {"hidden": 8, "seeds": 9}, with_reference=True)
    ours, reference, other = subjects

    assert [subject.name for subject in subjects] == ["spgcl", "reference", "bgrl"]
    assert ours.settings == reference.settings
    assert (ours.settings["hidden"], ours.settings["seeds"]) == (8, 9)
    assert ours.settings["batch_norm"] == "none"
    assert other.settings["hidden"] == 8
    assert "seeds" not in other.settings
    assert tuple(other.phases) == STEP_PHASES


def test_graphs_without_a_preset_get_the_published_rules():
    (ours,) = plan_subjects("genius-size", ["spgcl"], {}, with_reference=False)

    assert ours.settings["own_positive"] is True
    assert ours.settings["hidden"] == resolved_settings("spgcl", None, "", {})["hidden"]


@pytest.mark.parametrize(
    ("method", "given", "named"),
    [
        ("spgcl", {"sedes": 3}, "sedes"),
        ("bgr", {}, "bgr"),
        ("raw", {}, "raw"),
        ("spgcl", {"pool": "set"}, "pool"),
    ],
)
def test_what_cannot_be_timed_is_refused(method, given, named):
    with pytest.raises(InputError, match=named):
        plan_subjects("cora", [method], given, with_reference=True)


def test_the_reference_can_be_left_out():
    (ours,) = plan_subjects("cora", ["spgcl"], {"pool": "set"}, with_reference=False)

    assert ours.settings["pool"] == "set"


def test_products_in_a_format_that_the_device_lacks_are_refused(tiny):
    with pytest.raises(InputError, match="tf32"):
        compare([], lambda: tiny, CPU, precision="tf32")
