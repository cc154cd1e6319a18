"""A long training says so, once, with what would shorten it."""

import math

import pytest

from spgcl import Embedder, load
from spgcl.errors import Note
from spgcl.methods import resolved_settings
from spgcl.runs.estimate import estimating, shorter
from spgcl.runs.record import Run


def make_run(method="spgcl", **settings):
    resolved = resolved_settings(method, None, "toy", settings)
    graph = {"num_nodes": 1000, "num_edges": 50_000}
    return Run("toy", method, None, resolved, 0, graph, "cpu", 1)


@pytest.mark.parametrize(("per_step", "expected"), [(0.1, 0), (1.0, 1)])
def test_the_note_comes_once_and_only_if_it_is_long(monkeypatch, notes, per_step, expected):
    seen, clock = [], iter(per_step * step + 100 for step in (5, 10, 15, 20))
    monkeypatch.setattr("spgcl.runs.estimate.time.monotonic", lambda: next(clock))
    report = estimating(make_run(steps=300), lambda *given: seen.append(given))
    for step in (5, 10, 15, 20):
        report(step, 0.5)
    assert seen == [(5, 0.5), (10, 0.5), (15, 0.5), (20, 0.5)] and len(notes) == expected
    if expected:
        assert "5 min left, 1 s per step" in notes[0] and "--steps 75 (75 s)" in notes[0]


def test_a_long_first_step_is_enough(monkeypatch, notes):
    clock = iter([100.0, 130.0])
    monkeypatch.setattr("spgcl.runs.estimate.time.monotonic", lambda: next(clock))
    seen = []
    report = estimating(make_run(steps=301), lambda *given: seen.append(given))
    for step, loss in ((0, math.nan), (1, 0.5)):
        report(step, loss)
    assert seen == [(1, 0.5)] and "2.5 h left, 30 s per step" in notes[0]


def ways(*method, **settings):
    return shorter(make_run(*method, **settings), 1.0)


def test_only_what_the_method_has_is_advised():
    assert "batch_norm_rows=pool" in ways() and "fan_out=10" in ways()
    assert "hidden=256" in ways(hidden=512) and "hidden" not in ways(hidden=256)
    assert "batch_norm_rows" not in ways("node2vec")


def test_an_estimator_gives_the_estimate_too(monkeypatch):
    monkeypatch.setattr("spgcl.runs.estimate.LONG", 0.0)
    monkeypatch.setattr("spgcl.training.loop.REPORT_EVERY", -1.0)
    with pytest.warns(Note, match="per step"):
        Embedder("spgcl", steps=3, hidden=8, device="cpu").fit(load("csbm-homophilic"))
